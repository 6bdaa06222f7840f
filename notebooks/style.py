"""The style of the figures in the notebooks of this folder: colours and dashes by policy, in altair and matplotlib."""

#: Colours that are distinct for people with any colour vision (Okabe and Ito), without yellow, which prints badly.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]

#: Dashes, so that lines also differ in black and white: those of altair, and those of matplotlib in the same order.
DASHES = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4], [10, 3], [1, 3]]
LINES = ["-", "--", ":", "-.", (0, (4, 4)), (0, (10, 3)), (0, (1, 3))]


def policies(frame):
    """Returns the policies of a polars frame in order of appearance, which determines their colours."""
    return frame["policy"].unique(maintain_order=True).to_list()


def theme(alt, width=320, height=200):
    """Sets the style of altair to that of the paper figures of `plimsoll run`: light axes, small text, these colours."""

    @alt.theme.register("plimsoll", enable=True)
    def _():
        axis = {"grid": True, "gridColor": "#e6e6e6", "labelFontSize": 10, "titleFontSize": 10, "titleFontWeight": "normal"}
        return {
            "config": {
                "view": {"continuousWidth": width, "continuousHeight": height, "stroke": None},
                "axis": axis,
                "legend": {"labelFontSize": 10, "titleFontSize": 10},
                "range": {"category": COLOURS},
                "line": {"strokeWidth": 2},
            }
        }


def colours(alt, frame):
    """Returns the colour by policy, which is the same in every figure of a frame."""
    return alt.Color("policy:N", sort=policies(frame), scale=alt.Scale(domain=policies(frame), range=COLOURS))


def dashes(alt, frame):
    """Returns the dashes by policy, for figures that are printed without colours."""
    names = policies(frame)
    return alt.StrokeDash("policy:N", sort=names, scale=alt.Scale(domain=names, range=DASHES[: len(names)]))
