"use strict";
// The metric of the selected jobs by job size, policy against policy: the interactive form of the table by size. `page` has the functions
// and the state of explore.js.
const addBins = (page) => {
  const { data, columns, state, make, drawn, option, labelled, number, plain } = page;
  const bin = Uint8Array.from(columns.tasks, (tasks) => data.bins.filter(([, most]) => most !== null && most < tasks).length);
  const against = make("select", { onchange: () => page.change({}, "bins") });
  against.append(...page.policies.map((policy) => option(policy.at, policy.name)));
  against.value = String(page.baseline);
  const host = make("div", { className: "chart" });
  const about = make("p", { className: "legend" });
  const keys = make("p", { className: "legend" });
  const table = make("div", { className: "scroll", tabIndex: 0 });
  table.setAttribute("role", "group");
  table.setAttribute("aria-label", "The selected jobs by size");
  const node = page.card("The selected jobs by size", make("div", { className: "row" }, labelled("Change against", against)), host, keys, table, about);
  node.classList.add("sizes");

  // Returns the mean over seeds of the means of the seeds, and the half-width of its interval, as the tables have them.
  const overSeeds = (sums, counts) => {
    const means = [...sums.keys()].filter((run) => counts[run]).map((run) => sums[run] / counts[run]);
    if (!means.length) return { mean: NaN, half: NaN };
    const mean = means.reduce((sum, one) => sum + one, 0) / means.length;
    const squares = means.reduce((sum, one) => sum + (one - mean) ** 2, 0);
    const factor = means.length > 1 ? data.students[means.length - 2] : NaN;
    return { mean, half: factor * Math.sqrt(squares / (means.length - 1) / means.length) };
  };
  // The half-width has two significant digits or is an integer, and the mean has the same number of decimals, as in the tables.
  const withHalf = ({ mean, half }) => {
    if (!(half > 0)) return number(mean);
    const decimals = Math.max(0, Math.min(1 - Math.floor(Math.log10(half)), 5 - Math.floor(Math.log10(Math.abs(mean) || 1)), 9));
    return `${mean.toFixed(decimals)} ±${half.toFixed(decimals)}`;
  };
  const draw = () => {
    const [title, unit, of] = page.quantities[state.quantity];
    const list = page.shown();
    const base = Number(against.value);
    const policies = list.some((policy) => policy.at === base) ? list : [page.policies[base], ...list];
    const [runs, bins] = [data.runs.length, data.bins.length];
    const jobs = new Uint32Array(bins + 1);
    const rows = page.filtered();
    for (const row of rows) jobs[bin[row]]++;
    jobs[bins] = rows.length;
    const facts = policies.map((policy) => {
      const [sums, counts] = [new Float64Array((bins + 1) * runs), new Uint32Array((bins + 1) * runs)];
      for (const row of rows) {
        const value = of(policy.at, row);
        if (!Number.isFinite(value)) continue;
        for (const at of [bin[row] * runs + columns.run[row], bins * runs + columns.run[row]]) { sums[at] += value; counts[at]++; }
      }
      return { policy, sizes: Array.from({ length: bins + 1 }, (_, at) => overSeeds(sums.subarray(at * runs, (at + 1) * runs), counts.subarray(at * runs, (at + 1) * runs))) };
    });
    const filled = [...Array(bins).keys()].filter((at) => jobs[at]);
    // A single size repeats all jobs.
    const places = filled.length > 1 ? [...filled, bins] : rows.length ? [bins] : [];
    const label = (at) => (at === bins ? "all" : data.bins[at][0]);
    const ofBase = facts.find(({ policy }) => policy.at === base);
    const change = (fact, at) => (100 * (fact.sizes[at].mean - ofBase.sizes[at].mean)) / ofBase.sizes[at].mean;
    const signed = (value) => (Number.isFinite(value) ? `${value > 0 ? "+" : ""}${number(value)} %` : "–");
    const others = facts.filter((fact) => fact !== ofBase);
    const shownFacts = facts.filter(({ policy }) => list.includes(policy));
    const head = ["tasks", "jobs", ...shownFacts.map(({ policy }) => policy.name), ...others.map(({ policy }) => `${policy.name} against ${ofBase.policy.name}`)];
    table.replaceChildren(page.simpleTable(head, places.map((at) => [label(at), plain(jobs[at], 0), ...shownFacts.map((fact) => withHalf(fact.sizes[at])), ...others.map((fact) => signed(change(fact, at)))]), 1));
    const words = `Mean ${title.toLowerCase()}${page.unitText(unit)} of the selected jobs by number of tasks`;
    const spread = runs > 1 && state.run < 0 ? `, means over ${runs} seeds with the half-widths of their ${Math.round(100 * data.level)} % confidence intervals` : "";
    about.textContent = `${words}${spread}. Changes are in percent of the mean under ${ofBase.policy.name}; they are descriptions of the selected jobs and not tests. The quantity is that of the distribution.`;
    keys.replaceChildren(...shownFacts.map(({ policy }) => make("span", { className: "key" },
      drawn("svg", { class: "dot", viewBox: "0 0 10 10", "aria-hidden": "true" }, drawn("circle", { cx: 5, cy: 5, r: 5, fill: page.color(policy) })), policy.name)));
    host.replaceChildren();
    if (!places.length) { host.append(make("p", { className: "legend", textContent: "No job is selected." })); return; }
    host.append(picture(words, unit, places.map((at) => ({ name: label(at), jobs: jobs[at], marks: shownFacts.map((fact) => ({ policy: fact.policy, ...fact.sizes[at] })) }))));
  };
  const picture = (words, unit, groups) => {
    const width = Math.max(280, Math.min(host.clientWidth || 640, 1100));
    const [left, right, top, bottom, step] = [Math.min(120, 0.3 * width), 20, 8, 40, 11];
    const many = Math.max(1, ...groups.map((group) => group.marks.length));
    const tall = many * step + 12;
    const height = top + tall * groups.length + bottom;
    const svg = page.picture(width, height, `${words}: ` + groups.map((group) => `${group.name}: ${group.marks.map((mark) => `${mark.policy.name} ${number(mark.mean)}`).join(", ")}`).join("; "));
    const ends = groups.flatMap((group) => group.marks.flatMap(({ mean, half }) => (half > 0 ? [mean, mean + half] : [mean]))).filter(Number.isFinite);
    const high = Math.max(...ends, 1e-9);
    const x = (value) => left + (Math.min(Math.max(value, 0), high) / high) * (width - left - right);
    for (const tick of page.ticks(0, high, Math.max(2, Math.floor((width - left) / 90)))) {
      const text = drawn("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" });
      text.textContent = number(tick);
      svg.append(drawn("line", { x1: x(tick), x2: x(tick), y1: top, y2: height - bottom, class: "grid" }), text);
    }
    const title = drawn("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle", class: "title" });
    title.textContent = `Mean ${page.quantities[state.quantity][0].toLowerCase()}${page.unitText(unit)}`;
    svg.append(title);
    groups.forEach((group, nth) => {
      const from = top + nth * tall;
      const name = drawn("text", { x: left - 8, y: from + tall / 2 + 4, "text-anchor": "end" });
      name.textContent = group.name;
      svg.append(name);
      if (nth) svg.append(drawn("line", { x1: 0, x2: width, y1: from, y2: from, class: "grid" }));
      group.marks.forEach(({ policy, mean, half }, at) => {
        if (!Number.isFinite(mean)) return;
        const y = from + 6 + (at + 0.5) * step;
        const paint = page.color(policy);
        if (half > 0) svg.append(drawn("line", { x1: x(mean - half), x2: x(mean + half), y1: y, y2: y, stroke: paint, "stroke-width": 2, opacity: 0.6 }));
        const note = drawn("title", {});
        note.textContent = `${policy.name}: ${withHalf({ mean, half })}`;
        svg.append(drawn("circle", { cx: x(mean), cy: y, r: 4.5, fill: paint }, note));
      });
    });
    return svg;
  };
  page.views.push({ on: ["policies", "jobs", "quantity", "bins", "theme"], draw, node });
};
