"""One style for the figures of the notebooks beside this file: colours and dashes by policy, in altair and matplotlib."""

#: Colours that people with any colour vision can tell apart (Okabe and Ito), without yellow, which no printer likes.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"]

#: Dashes, so that lines differ in black and white, too: altair's, and matplotlib's of the same place.
DASHES = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2], [4, 4], [10, 3], [1, 3]]
LINES = ["-", "--", ":", "-.", (0, (4, 4)), (0, (10, 3)), (0, (1, 3))]


def policies(frame):
    """The policies of a frame of polars, in the order in which they first appear: the colours follow it."""
    return frame["policy"].unique(maintain_order=True).to_list()


def theme(alt, width=320, height=200):
    """Makes altair draw in the style of the paper figures of `plimsoll run`: light axes, small text, these colours."""

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
    """Colour by policy, the same one in every figure of a frame."""
    return alt.Color("policy:N", sort=policies(frame), scale=alt.Scale(domain=policies(frame), range=COLOURS))


def dashes(alt, frame):
    """Dashes by policy, for figures that are printed without colours."""
    names = policies(frame)
    return alt.StrokeDash("policy:N", sort=names, scale=alt.Scale(domain=names, range=DASHES[: len(names)]))
