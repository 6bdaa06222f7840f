"use strict";
// The interactive part of the report. It draws with uPlot, which precedes this script (MIT licence, Copyright (c) 2022 Leon Sorokin).
(async () => {
  const section = document.getElementById("explore");
  const headerText = document.getElementById("explore-header");
  if (!section || !headerText) return;
  const data = JSON.parse(headerText.textContent);

  // --- Elements ---------------------------------------------------------------------------------------------------------------------
  const SVG = "http://www.w3.org/2000/svg";
  const make = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key in node && key !== "list") node[key] = value;
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  };
  const drawn = (name, attributes, ...children) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const option = (value, text) => make("option", { value: String(value), textContent: text });
  const labelled = (text, control) => make("label", {}, make("span", { textContent: text }), control);

  section.hidden = false;
  document.querySelector("nav a[href='#explore']").hidden = false;
  const root = make("div", { className: "explore" });
  section.append(root);
  const complain = (text) => root.append(make("p", { className: "legend", textContent: text }));
  if (!("DecompressionStream" in window)) {
    complain("This browser cannot unpack the data of this part; the other parts of the page are complete.");
    return;
  }

  // --- Data -------------------------------------------------------------------------------------------------------------------------
  const packed = Uint8Array.from(atob(document.getElementById("explore-block").textContent.trim()), (one) => one.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  const KINDS = { u8: [1, 255], u16: [2, 65535], u32: [4, 4294967295], f32: [4, NaN], f64: [8, NaN] };
  const columns = {};
  for (const { name, kind, at, count, size } of data.columns) {
    if (kind === "names") {
      columns[name] = count ? new TextDecoder().decode(raw.subarray(at, at + size - 1)).split("\n") : [];
      continue;
    }
    const [width, absent] = KINDS[kind];
    const bytes = new Uint8Array(count * width);
    for (let byte = 0; byte < width; byte++) for (let row = 0; row < count; row++) bytes[row * width + byte] = raw[at + byte * count + row];
    const types = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array, f64: Float64Array };
    const values = new types[kind](bytes.buffer);
    columns[name] = Float64Array.from(values, (value) => (value === absent ? NaN : value));
  }
  const policies = data.policies.map((policy, at) => ({ ...policy, at }));
  const jobs = columns.job ? columns.job.length : 0;
  const users = columns.users || [];

  // --- Numbers ----------------------------------------------------------------------------------------------------------------------
  const plain = (value, digits) => value.toLocaleString("en", { minimumFractionDigits: 0, maximumFractionDigits: digits });
  const number = (value) => {
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    return plain(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 || size === 0 ? 3 : 5);
  };
  const inUnit = (value, unit) => (unit === "share" ? number(100 * value) : number(value));
  const unitText = (unit) => ({ s: " (s)", us: " (µs)", share: " (%)" }[unit] || "");
  // Points in time have the unit of the static figures; durations are in seconds, as in the tables.
  const clock = data.clock;
  const moment = (time) => `${plain(time / clock.seconds, clock.seconds > 1 ? 5 : 3)} ${clock.unit}`;
  const quantile = (sorted, q) => (sorted.length ? sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] : NaN);

  // --- State ------------------------------------------------------------------------------------------------------------------------
  const defaultMetric = Math.max(0, data.metrics.findIndex((metric) => metric.column === "completion_mean_s"));
  const fresh = () => ({
    shown: new Set(policies.map((policy) => policy.at)), metric: defaultMetric, axis: 0, cells: data.axes.map(() => 0),
    run: -1, from: null, to: null, view: null, user: "", quantity: "completion", series: 0, page: 0, job: -1, sort: { by: "wait", down: true },
    userSort: { by: "jobs", down: true },
  });
  const state = fresh();
  let filtered = new Uint32Array(0);
  const filterJobs = () => {
    // A quoted word is a whole name, another one is a part of a name.
    const words = state.user.toLowerCase().match(/"[^"]*"|[^\s,]+/g) || [];
    const has = (name) => words.some((word) => (word.length > 1 && word[0] === '"' ? word.slice(1, word.endsWith('"') ? -1 : undefined) === name : name.includes(word)));
    const wanted = words.length ? users.map((name) => has(name.toLowerCase())) : null;
    const from = state.from === null ? -Infinity : 1000 * state.from;
    const to = state.to === null ? Infinity : 1000 * state.to;
    const found = new Uint32Array(jobs);
    let count = 0;
    for (let row = 0; row < jobs; row++) {
      if (state.run >= 0 && columns.run[row] !== state.run) continue;
      const at = columns.submit_ms[row];
      if (at < from || at > to || (wanted && !wanted[columns.user[row]])) continue;
      found[count++] = row;
    }
    filtered = found.subarray(0, count);
  };
  const shown = () => policies.filter((policy) => state.shown.has(policy.at));
  const [waits, rans] = ["wait_ms", "ran_ms"].map((name) => policies.map((policy) => columns[`${name}:${policy.at}`]));
  const wait = (policy, row) => waits[policy][row] / 1000;
  const completion = (policy, row) => (waits[policy][row] + rans[policy][row]) / 1000;
  const slowdown = (policy, row) => (1000 * completion(policy, row)) / columns.ideal_ms[row];
  const QUANTITIES = {
    completion: ["Completion time", "s", completion], wait: ["Wait", "s", wait], slowdown: ["Slowdown", "1", slowdown],
  };

  // --- Updates ----------------------------------------------------------------------------------------------------------------------
  // A view has the parts of the state that it shows, a function that draws it, and its card.
  const views = [];
  const FRAME = 24;
  let [pending, filterIsStale] = [false, false];
  // `what` has the parts of the state that changed: policies, metric, jobs (the filter), table, story, theme. Views on the screen are drawn in
  // the next frame, the others afterwards one by one, so that a change is visible soon even with many jobs.
  const change = (changes, ...what) => {
    Object.assign(state, changes);
    if (what.includes("jobs")) filterIsStale = true;
    for (const view of views) if (what.includes("all") || view.on.some((one) => what.includes(one))) view.stale = true;
    if (pending) return;
    pending = true;
    requestAnimationFrame(update);
  };
  const isVisible = ({ node }) => {
    if (!node) return true;
    const { top, bottom } = node.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  };
  const update = () => {
    const start = performance.now();
    // If a view fails, the next change draws again.
    pending = false;
    if (filterIsStale) filterJobs();
    filterIsStale = false;
    const stale = views.filter((view) => view.stale);
    const visible = stale.filter(isVisible);
    for (const view of visible.length ? visible : stale.slice(0, 1)) {
      view.stale = false;
      view.draw();
      if (performance.now() - start > FRAME) break;
    }
    pending ||= views.some((view) => view.stale);
    if (pending) setTimeout(() => requestAnimationFrame(update), 0);
    else section.dataset.drawn = String(1 + Number(section.dataset.drawn || 0));
  };
  const card = (title, ...children) => {
    const node = make("section", { className: "card view" }, make("h3", { textContent: title }), ...children);
    node.setAttribute("aria-label", title);
    root.append(node);
    return node;
  };
  const color = (policy) => {
    // Black curves follow the ink of the page.
    if (policy.color.toUpperCase() === "#000000") return getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
    return policy.color;
  };
  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // --- Controls ---------------------------------------------------------------------------------------------------------------------
  const theme = make("select", {}, option("", "As the system"), option("light", "Light"), option("dark", "Dark"), option("contrast", "High contrast"));
  theme.addEventListener("change", () => {
    if (theme.value) document.documentElement.dataset.theme = theme.value;
    else delete document.documentElement.dataset.theme;
    change({}, "theme");
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => change({}, "theme"));
  const boxes = policies.map((policy) => {
    const box = make("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => {
      if (box.checked) state.shown.add(policy.at);
      else state.shown.delete(policy.at);
      change({}, "policies");
    });
    const swatch = drawn("svg", { class: "swatch", viewBox: "0 0 24 8", "aria-hidden": "true" },
      drawn("line", { x1: 0, x2: 24, y1: 4, y2: 4, "stroke-width": 3, "stroke-dasharray": policy.dash.join(" ") }));
    return { policy, box, swatch, label: make("label", { className: "chip" }, box, swatch, make("span", { textContent: policy.name })) };
  });
  const paintSwatches = () => boxes.forEach(({ policy, swatch }) => swatch.firstChild.setAttribute("stroke", color(policy)));
  const status = make("p", { className: "legend" });
  status.setAttribute("role", "status");
  const chooser = make("fieldset", { className: "chips" }, make("legend", { textContent: "Policies" }), ...boxes.map((box) => box.label));
  const controls = make("div", { className: "card controls" }, chooser);
  root.append(controls);
  const row = make("div", { className: "row" });
  controls.append(row);
  const fields = {};
  if (jobs) {
    fields.run = make("select", { onchange: () => change({ run: Number(fields.run.value), page: 0, job: -1 }, "jobs") });
    if (data.runs.length > 1) fields.run.append(option(-1, "all"));
    data.runs.forEach((run, at) => fields.run.append(option(at, data.seeds[run] === null ? String(run) : String(data.seeds[run]))));
    const time = (name, text) => {
      fields[name] = make("input", { type: "number", min: "0", step: "any", placeholder: text });
      fields[name].addEventListener("input", () => {
        const value = fields[name].value === "" ? null : Number(fields[name].value) * clock.seconds;
        change({ [name]: value, page: 0 }, "jobs");
      });
      return fields[name];
    };
    fields.user = make("input", { type: "search", placeholder: "all", oninput: () => change({ user: fields.user.value, page: 0 }, "jobs") });
    row.append(labelled("Seed of the jobs", fields.run), labelled(`Submitted from (${clock.unit})`, time("from", "start")),
      labelled(`to (${clock.unit})`, time("to", "end")), labelled("Users with", fields.user));
  }
  // Selects the jobs that were submitted between two times, in seconds; null is no limit.
  const setWindow = (from, to) => {
    const [first, last] = [from, to].map((time) => (time === null ? null : Math.max(0, Math.round(1000 * time) / 1000)));
    fields.from.value = first === null ? "" : String(Number((first / clock.seconds).toFixed(6)));
    fields.to.value = last === null ? "" : String(Number((last / clock.seconds).toFixed(6)));
    change({ from: first, to: last, page: 0 }, "jobs");
  };
  let resetTimeline = () => {};
  const reset = make("button", { type: "button", textContent: "Reset" });
  reset.addEventListener("click", () => {
    Object.assign(state, fresh());
    boxes.forEach(({ box }) => { box.checked = true; });
    for (const name of ["from", "to", "user"]) if (fields[name]) fields[name].value = "";
    if (fields.run) fields.run.value = "-1";
    if (fields.run && fields.run.selectedIndex < 0) fields.run.selectedIndex = 0;
    sliders.forEach(({ input, show }) => { input.value = "0"; show(); });
    metricChoice.value = String(state.metric);
    resetTimeline();
    change({}, "all", "jobs");
  });
  row.append(labelled("Colours", theme), reset);

  // --- Metrics of runs ---------------------------------------------------------------------------------------------------------------
  const metricChoice = make("select", { onchange: () => change({ metric: Number(metricChoice.value) }, "metric") });
  const groups = [["Summary", true], ["Other metrics", false]];
  for (const [label, key] of groups) {
    const list = data.metrics.map((metric, at) => [metric, at]).filter(([metric]) => metric.key === key);
    if (!list.length) continue;
    metricChoice.append(make("optgroup", { label }, ...list.map(([metric, at]) => option(at, metric.title + unitText(metric.unit)))));
  }
  metricChoice.value = String(state.metric);
  const sliders = [];
  const metricRow = make("div", { className: "row" }, labelled("Metric", metricChoice));
  if (data.axes.length > 1) {
    const axisChoice = make("select", { onchange: () => change({ axis: Number(axisChoice.value) }, "metric") });
    data.axes.forEach((axis, at) => axisChoice.append(option(at, axis.title)));
    metricRow.append(labelled("Axis", axisChoice));
  }
  if (data.axes.length > 1) {
    data.axes.forEach((axis, at) => {
      const input = make("input", { type: "range", min: "0", max: String(axis.values.length - 1), step: "1", value: "0" });
      const text = make("output", {});
      const show = () => {
        text.textContent = axis.values[Number(input.value)];
        input.setAttribute("aria-valuetext", text.textContent);
      };
      input.addEventListener("input", () => {
        show();
        state.cells[at] = Number(input.value);
        change({}, "metric");
      });
      show();
      const label = make("label", {}, make("span", { textContent: axis.title }), input, text);
      sliders.push({ input, show, label, at });
      metricRow.append(label);
    });
  }
  const metricChart = make("div", { className: "chart" });
  const metricAbout = make("p", { className: "legend" });
  const metricTable = make("div", { className: "scroll", tabIndex: 0 });
  const metricCard = card("Metrics of runs", metricRow, metricChart, metricAbout, make("details", {}, make("summary", { textContent: "As a table" }), metricTable));
  const at = (cell, policy) => (state.metric * data.cells.length + cell) * policies.length + policy;
  const interval = (cell, policy) => ["mean", "low", "high"].map((name) => columns[name][at(cell, policy)]);
  const single = (policy) => {
    if (!columns.values || data.cells.length > 1) return [];
    const from = at(0, policy) * data.width;
    return [...columns.values.subarray(from, from + data.width)].filter((value) => Number.isFinite(value));
  };
  // The cells along the chosen axis, at the positions of the sliders on the other axes.
  const line = () => {
    const axis = data.axes[state.axis];
    return axis.values.map((value, place) => {
      const wanted = data.axes.map((one, nth) => (nth === state.axis ? value : one.values[state.cells[nth]]));
      return { value, place, cell: data.cells.findIndex((cell) => cell.values.every((one, nth) => one === wanted[nth])) };
    }).filter((point) => point.cell >= 0);
  };
  const ticks = (low, high, count) => {
    const step = (high - low) / count || 1;
    const unit = 10 ** Math.floor(Math.log10(step));
    const nice = [1, 2, 5, 10].map((one) => one * unit).find((one) => one >= step);
    const list = [];
    for (let nth = Math.ceil(low / nice); nth * nice <= high * (1 + 1e-9); nth++) list.push(nth * nice || 0);
    return list;
  };
  const drawMetric = () => {
    const metric = data.metrics[state.metric];
    const swept = data.axes.length > 0;
    sliders.forEach(({ label, at: nth }) => { label.hidden = nth === state.axis; });
    const points = swept ? line() : [];
    const list = shown();
    const rows = swept ? points.flatMap((point) => list.map((policy) => ({ point, policy }))) : list.map((policy) => ({ policy }));
    const facts = rows.map((one) => {
      const [mean, low, high] = interval(swept ? one.point.cell : 0, one.policy.at);
      return { ...one, mean, low: Number.isFinite(low) ? low : mean, high: Number.isFinite(high) ? high : mean, singles: swept ? [] : single(one.policy.at) };
    }).filter((one) => Number.isFinite(one.mean));
    metricChart.replaceChildren();
    const width = Math.max(280, Math.min(metricChart.clientWidth || 640, 1100));
    if (!facts.length) metricChart.append(make("p", { className: "legend", textContent: "No values for this choice." }));
    else if (swept) metricChart.append(lines(metric, points, list, facts, width));
    else metricChart.append(dots(metric, facts, width));
    const direction = metric.better ? `; ${metric.better} is better` : "";
    const spread = data.width > 1 ? ` Means over seeds with ${Math.round(100 * data.level)} % confidence intervals.` : "";
    metricAbout.textContent = `${metric.title}: ${metric.about}${direction}.${spread}`;
    const head = [...(swept ? [data.axes[state.axis].title] : []), "policy", `mean${unitText(metric.unit)}`, "low", "high"];
    const body = facts.map((one) => [...(swept ? [one.point.value] : []), one.policy.name, ...[one.mean, one.low, one.high].map((value) => inUnit(value, metric.unit))]);
    metricTable.replaceChildren(simpleTable(head, body, swept ? 2 : 1));
  };
  const simpleTable = (head, body, texts) => make("table", {},
    make("thead", {}, make("tr", {}, ...head.map((text, nth) => make("th", { scope: "col", className: nth < texts ? "" : "number", textContent: text })))),
    make("tbody", {}, ...body.map((cells) => make("tr", {}, ...cells.map((text, nth) => make("td", { className: nth < texts ? "" : "number", textContent: text }))))));
  const picture = (width, height, label) => {
    const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" });
    svg.setAttribute("aria-label", label);
    return svg;
  };
  const inWords = (metric, facts) => `${metric.title}: ` + facts.map((one) =>
    `${one.point ? `${one.point.value}, ` : ""}${one.policy.name} ${inUnit(one.mean, metric.unit)}`).join("; ");
  const dots = (metric, facts, width) => {
    const left = Math.min(190, 14 + 7.2 * Math.max(...facts.map((one) => one.policy.name.length)));
    const [step, top, bottom] = [30, 8, 40];
    const height = top + step * facts.length + bottom;
    const svg = picture(width, height, inWords(metric, facts));
    const all = facts.flatMap((one) => [one.low, one.high, ...one.singles]);
    let [low, high] = [Math.min(...all), Math.max(...all)];
    if (low > 0 && low < 0.6 * high) low = 0;
    if (low === high) { low -= Math.abs(low) * 0.1 || 1; high += Math.abs(high) * 0.1 || 1; }
    const x = (value) => left + ((value - low) / (high - low)) * (width - left - 24);
    for (const tick of ticks(low, high, Math.max(2, Math.floor((width - left) / 90)))) {
      svg.append(drawn("line", { x1: x(tick), x2: x(tick), y1: top, y2: height - bottom, class: "grid" }));
      const text = drawn("text", { x: x(tick), y: height - bottom + 16, "text-anchor": "middle" });
      text.textContent = inUnit(tick, metric.unit);
      svg.append(text);
    }
    const title = drawn("text", { x: left + (width - left) / 2, y: height - 6, "text-anchor": "middle", class: "title" });
    title.textContent = metric.title + unitText(metric.unit);
    svg.append(title);
    facts.forEach((one, nth) => {
      const y = top + step * (nth + 0.5);
      const name = drawn("text", { x: left - 8, y: y + 4, "text-anchor": "end" });
      name.textContent = one.policy.name;
      svg.append(name);
      const paint = color(one.policy);
      one.singles.forEach((value) => svg.append(drawn("circle", { cx: x(value), cy: y, r: 3, fill: paint, opacity: 0.35 })));
      svg.append(drawn("line", { x1: x(one.low), x2: x(one.high), y1: y, y2: y, stroke: paint, "stroke-width": 2 }));
      svg.append(drawn("circle", { cx: x(one.mean), cy: y, r: 5, fill: paint }));
    });
    return svg;
  };
  const lines = (metric, points, list, facts, width) => {
    const [left, right, top, bottom, height] = [64, 16, 30, 44, 340];
    const svg = picture(width, height, inWords(metric, facts));
    const numeric = points.every((point) => point.value.trim() !== "" && Number.isFinite(Number(point.value)));
    const place = (point) => (numeric ? Number(point.value) : point.place);
    if (numeric) points.sort((a, b) => place(a) - place(b));
    const xs = points.map(place);
    const all = facts.flatMap((one) => [one.low, one.high]);
    let [low, high] = [Math.min(...all), Math.max(...all)];
    if (low > 0 && low < 0.6 * high) low = 0;
    if (low === high) { low -= Math.abs(low) * 0.1 || 1; high += Math.abs(high) * 0.1 || 1; }
    const [first, last] = [Math.min(...xs), Math.max(...xs)];
    const inner = width - left - right - 40;
    const x = (point) => left + 20 + (last === first ? inner / 2 : ((place(point) - first) / (last - first)) * inner);
    const y = (value) => top + (1 - (value - low) / (high - low)) * (height - top - bottom);
    for (const tick of ticks(low, high, 5)) {
      svg.append(drawn("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "grid" }));
      const text = drawn("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" });
      text.textContent = inUnit(tick, metric.unit);
      svg.append(text);
    }
    // Ticks are at the swept values.
    let free = -Infinity;
    for (const point of points) {
      const text = drawn("text", { x: x(point), y: height - bottom + 16, "text-anchor": "middle" });
      text.textContent = point.value;
      const room = 4 + 7 * point.value.length;
      if (x(point) - room / 2 < free) continue;
      free = x(point) + room / 2;
      svg.append(text);
    }
    const title = drawn("text", { x: left + (width - left) / 2, y: height - 6, "text-anchor": "middle", class: "title" });
    title.textContent = data.axes[state.axis].title;
    const heading = drawn("text", { x: 4, y: 16, class: "title" });
    heading.textContent = metric.title + unitText(metric.unit);
    svg.append(title, heading);
    for (const policy of list) {
      const own = points.flatMap((point) => facts.filter((one) => one.policy === policy && one.point === point));
      if (!own.length) continue;
      const paint = color(policy);
      const path = own.map((one, nth) => `${nth ? "L" : "M"}${x(one.point)},${y(one.mean)}`).join("");
      svg.append(drawn("path", { d: path, fill: "none", stroke: paint, "stroke-width": 2, "stroke-dasharray": policy.dash.map((dash) => 1.6 * dash).join(" ") }));
      for (const one of own) {
        svg.append(drawn("line", { x1: x(one.point), x2: x(one.point), y1: y(one.low), y2: y(one.high), stroke: paint, "stroke-width": 1.5 }));
        svg.append(drawn("circle", { cx: x(one.point), cy: y(one.mean), r: 4, fill: paint }));
      }
    }
    return svg;
  };
  views.push({ on: ["policies", "metric", "theme"], draw: drawMetric, node: metricCard });

  // --- Charts over time and of distributions ------------------------------------------------------------------------------------------
  const chart = (host, axes, series, values, more = {}) => {
    host.replaceChildren();
    const width = Math.max(260, Math.min(host.clientWidth || 640, 1600));
    const axis = (label) => ({ label, labelSize: 22, stroke: ink("--ink"), grid: { stroke: ink("--mesh"), width: 1 }, ticks: { stroke: ink("--mesh"), width: 1 } });
    return new uPlot({
      width, height: width < 500 ? 240 : 300, padding: [12, 28, 0, 0], legend: { live: false, show: false }, ...more,
      axes: [{ ...axis(axes[0].label), ...axes[0].more }, { ...axis(axes[1].label), size: 58, ...axes[1].more }],
      series: [{}, ...series.map((policy) => ({ label: policy.name, stroke: color(policy), width: 2, dash: policy.dash.map((dash) => 2 * dash), points: { show: false }, spanGaps: true }))],
    }, values, host);
  };
  let overTime = null;
  if (data.withSeries.length) {
    const choice = make("select", { onchange: () => change({ series: Number(choice.value) }, "series") });
    data.series.forEach((one, nth) => choice.append(option(nth, one.title + unitText(one.unit))));
    const host = make("div", { className: "chart", role: "img" });
    const hint = make("p", { className: "legend" });
    const seed = data.seeds[data.firstRun];
    hint.textContent = `${seed === null ? "" : `Seed ${seed}. `}Drag over the chart, or fill in the fields above, to select the jobs that were submitted in a part of the time.`;
    const node = card("Over time", make("div", { className: "row" }, labelled("Quantity", choice)), host, hint);
    const select = () => {
      if (!overTime) return;
      const [from, to] = [state.from, state.to];
      if (from === null && to === null) { overTime.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false); return; }
      const left = overTime.valToPos(from === null ? overTime.scales.x.min : from / clock.seconds, "x");
      const right = overTime.valToPos(to === null ? overTime.scales.x.max : to / clock.seconds, "x");
      overTime.setSelect({ left, width: Math.max(1, right - left), top: 0, height: overTime.over.clientHeight }, false);
    };
    // Shows the part of the time that the timeline shows.
    const zoom = () => {
      const times = overTime ? overTime.data[0] : [];
      if (!times.length) return;
      const [min, max] = state.view ? state.view.map((time) => time / clock.seconds) : [times[0], times[times.length - 1]];
      overTime.setScale("x", { min, max });
      select();
    };
    const draw = () => {
      const one = data.series[state.series];
      const list = shown().filter((policy) => data.withSeries.includes(policy.at));
      const scale = one.unit === "share" ? 100 : 1;
      const tables = list.map((policy) => [
        Array.from(columns[`time_us:${policy.at}`], (us) => us / 1e6 / clock.seconds),
        Array.from(columns[`${one.column}:${policy.at}`], (value) => (Number.isFinite(value) ? value * scale : null)),
      ]);
      const values = tables.length ? uPlot.join(tables) : [[], []];
      host.setAttribute("aria-label", `${one.title} over time: ` + list.map((policy, nth) => {
        const there = tables[nth][1].filter((value) => value !== null);
        return `${policy.name} from ${number(Math.min(...there))} to ${number(Math.max(...there))}`;
      }).join("; "));
      overTime = chart(host, [{ label: `Time (${clock.unit})` }, { label: one.title + unitText(one.unit) }], list, values, {
        scales: { x: { time: false } },
        cursor: { drag: { x: true, y: false, setScale: false } },
        hooks: {
          setSelect: [(plot) => {
            if (!jobs) return;
            const { left, width } = plot.select;
            const time = (position) => plot.posToVal(position, "x") * clock.seconds;
            setWindow(...(width < 3 ? [null, null] : [time(left), time(left + width)]));
          }],
        },
      });
      zoom();
      select();
    };
    views.push({ on: ["policies", "series", "theme"], draw, node });
    views.push({ on: ["view"], draw: zoom, node });
    views.push({ on: ["jobs"], draw: select });
  }

  if (jobs) {
    const base = policies.find((policy) => policy.name === data.baseline) || policies[0];
    const capital = (text) => text[0].toUpperCase() + text.slice(1);
    const showStory = () => requestAnimationFrame(() => requestAnimationFrame(() => {
      const story = section.querySelector(".story");
      story.focus({ preventScroll: true });
      story.scrollIntoView({ block: "nearest", behavior: "instant" });
    }));
    const page = {
      data, columns, users, policies, baseline: base.at, state, change, make, drawn, option, labelled, number, plain, unitText, clock, moment, ticks, card, ink, color,
      capital, wait, quantities: QUANTITIES, shown, picture, simpleTable, views, setWindow, showStory, filtered: () => filtered,
    };
    resetTimeline = addTimeline(page);
    const POINTS = 240;
    const choice = make("select", { onchange: () => change({ quantity: choice.value }, "quantity") });
    Object.entries(QUANTITIES).forEach(([key, [title, unit]]) => choice.append(option(key, title + unitText(unit))));
    const host = make("div", { className: "chart", role: "img" });
    const facts = make("div", { className: "scroll", tabIndex: 0 });
    const node = card("Distribution over the selected jobs", make("div", { className: "row" }, labelled("Quantity", choice)), host, facts);
    // The sorted values of the selected jobs, by quantity and policy.
    let known = { rows: null, of: new Map() };
    const inOrder = (of, policy) => {
      const values = new Float64Array(filtered.length);
      let [count, sum] = [0, 0];
      for (const one of filtered) {
        const value = of(policy.at, one);
        if (Number.isFinite(value)) { values[count++] = value; sum += value; }
      }
      return { values: values.subarray(0, count).sort(), mean: sum / count };
    };
    const draw = () => {
      const [title, unit, of] = QUANTITIES[state.quantity];
      if (known.rows !== filtered) known = { rows: filtered, of: new Map() };
      const sorted = shown().map((policy) => {
        const key = `${state.quantity} ${policy.at}`;
        if (!known.of.has(key)) known.of.set(key, inOrder(of, policy));
        return { policy, ...known.of.get(key) };
      });
      const there = sorted.filter(({ values }) => values.length);
      const positive = there.map(({ values }) => values.find((value) => value > 0)).filter((value) => value !== undefined);
      const low = Math.max(1e-3, Math.min(...positive, Infinity));
      const high = Math.max(...there.map(({ values }) => values[values.length - 1]), low * 1.001);
      const log = Number.isFinite(low);
      const grid = log ? Array.from({ length: POINTS + 1 }, (_, nth) => low * (high / low) ** (nth / POINTS)) : [0, 1];
      const below = (values, limit) => {
        let [from, to] = [0, values.length];
        while (from < to) { const middle = (from + to) >> 1; if (values[middle] <= limit) from = middle + 1; else to = middle; }
        return from;
      };
      const curves = sorted.map(({ values }) => grid.map((limit) => (values.length ? (100 * below(values, limit)) / values.length : null)));
      chart(host, [{ label: title + unitText(unit), more: { values: (_, splits) => splits.map((value) => (value === null ? "" : number(value))) } }, { label: "Jobs (%)" }],
        shown(), [grid, ...curves], { scales: { x: { time: false, distr: log ? 3 : 1 }, y: { range: [0, 100] } }, cursor: { drag: { x: false, y: false } } });
      host.setAttribute("aria-label", `Distribution of ${title.toLowerCase()}: ` + there.map(({ policy, values }) => `${policy.name} median ${number(quantile(values, 0.5))}`).join("; "));
      facts.replaceChildren(simpleTable(["policy", "jobs", `mean${unitText(unit)}`, "median", "90 %", "99 %", "largest"],
        sorted.map(({ policy, values, mean }) => [policy.name, plain(values.length, 0), ...[mean, quantile(values, 0.5), quantile(values, 0.9), quantile(values, 0.99), quantile(values, 1)].map(number)]), 1));
    };
    views.push({ on: ["jobs"], draw: () => { status.textContent = `${plain(filtered.length, 0)} of ${plain(jobs, 0)} jobs selected.`; } });
    views.push({ on: ["policies", "jobs", "quantity", "theme"], draw, node });
    if (data.runs.length < data.width) controls.append(make("p", { className: "legend", textContent: `The page has the jobs of ${data.runs.length} of ${data.width} seeds; the tables of the results have all.` }));
    controls.append(status);

    // --- Tables ----------------------------------------------------------------------------------------------------------------------
    const heads = (list, sort, onSort) => make("thead", {}, make("tr", {}, ...list.map(({ key, text, numeric }) => {
      const button = make("button", { type: "button", className: "sort", textContent: text });
      const cell = make("th", { scope: "col", className: numeric ? "number" : "" }, button);
      if (sort.by === key) cell.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      button.dataset.key = key;
      button.addEventListener("click", () => onSort({ by: key, down: sort.by === key ? !sort.down : Boolean(numeric) }));
      return cell;
    })));
    // Keeps the keyboard focus on the heading whose table was drawn again.
    const replace = (host, table) => {
      const focused = host.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
      host.replaceChildren(table);
      if (focused !== undefined) [...host.querySelectorAll("button")].find((one) => one.dataset.key === focused)?.focus();
    };
    const compare = (down) => (a, b) => (Number.isNaN(a.value) ? 1 : 0) - (Number.isNaN(b.value) ? 1 : 0) || (down ? b.value - a.value : a.value - b.value) || a.at - b.at;

    const userHost = make("div", { className: "scroll tall", tabIndex: 0 });
    userHost.setAttribute("role", "group");
    userHost.setAttribute("aria-label", "Users of the selected jobs");
    const userCard = card("Users of the selected jobs", userHost);
    const USERS = 200;
    // The sums of the selected jobs; a new order of the table does not change them.
    let totals = null;
    const addUp = () => {
      const counts = new Uint32Array(users.length);
      const sums = policies.map(() => new Float64Array(users.length));
      const ended = policies.map(() => new Uint32Array(users.length));
      for (const one of filtered) counts[columns.user[one]]++;
      for (const { at } of policies) {
        for (const one of filtered) {
          const value = completion(at, one);
          if (Number.isFinite(value)) { sums[at][columns.user[one]] += value; ended[at][columns.user[one]]++; }
        }
      }
      return { rows: filtered, counts, sums, ended };
    };
    const drawUsers = () => {
      if (!totals || totals.rows !== filtered) totals = addUp();
      const { counts, sums, ended } = totals;
      const list = shown();
      const mean = (policy, user) => sums[policy][user] / ended[policy][user];
      const { by, down } = state.userSort;
      const key = (user) => (by === "jobs" ? counts[user] : mean(Number(by), user));
      let rows = users.map((name, user) => ({ at: user, name, value: by === "user" ? 0 : key(user) })).filter((one) => counts[one.at]);
      if (by === "user") rows.sort((a, b) => (down ? -1 : 1) * a.name.localeCompare(b.name, "en", { numeric: true }));
      else rows.sort(compare(down));
      const more = rows.length - USERS;
      rows = rows.slice(0, USERS);
      const columnsShown = [{ key: "user", text: "user" }, { key: "jobs", text: "jobs", numeric: true },
        ...list.map((policy) => ({ key: String(policy.at), text: `${policy.name} (s)`, numeric: true }))];
      const body = make("tbody", {}, ...rows.map((one) => {
        const pick = make("button", { type: "button", className: "link", textContent: one.name });
        pick.dataset.key = `user ${one.name}`;
        pick.addEventListener("click", () => { fields.user.value = `"${one.name}"`; change({ user: fields.user.value, page: 0 }, "jobs"); });
        return make("tr", {}, make("td", {}, pick), make("td", { className: "number", textContent: plain(counts[one.at], 0) }),
          ...list.map((policy) => make("td", { className: "number", textContent: number(mean(policy.at, one.at)) })));
      }));
      const table = make("table", {}, make("caption", { textContent: `Mean completion times in seconds${more > 0 ? `; ${plain(more, 0)} more users` : ""}` }),
        heads(columnsShown, state.userSort, (sort) => change({ userSort: sort }, "users")), body);
      replace(userHost, table);
    };
    views.push({ on: ["policies", "jobs", "users"], draw: drawUsers, node: userCard });
    addBins(page);

    const PAGE = 25;
    const jobHost = make("div", { className: "scroll", tabIndex: 0 });
    const search = make("input", { type: "search", placeholder: "part of a name", oninput: () => change({ page: 0 }, "table") });
    const of = make("select", { onchange: () => change({ page: 0 }, "table") });
    policies.forEach((policy) => of.append(option(policy.at, policy.name)));
    of.value = String(base.at);
    const back = make("button", { type: "button", textContent: "Back", onclick: () => change({ page: state.page - 1 }, "table") });
    const next = make("button", { type: "button", textContent: "Next", onclick: () => change({ page: state.page + 1 }, "table") });
    const place = make("span", { className: "place" });
    const jobCard = card("Selected jobs", make("div", { className: "row" }, labelled("Times under", of), labelled("Jobs with", search)), jobHost, make("div", { className: "row" }, back, place, next));
    const story = make("div", { className: "story", tabIndex: -1 });
    story.setAttribute("aria-live", "polite");
    jobCard.classList.add("wide");
    jobCard.append(story);
    // Returns a page of rows in the order of a key; NaN is last. Sorts plain numbers, and then only the rows of the page.
    const pageOf = (rows, key, down, start) => {
      const values = Float64Array.from(rows, (one) => { const value = key(one); return Number.isNaN(value) ? Infinity : down ? -value : value; });
      const sorted = values.slice().sort();
      const end = Math.min(start + PAGE, sorted.length);
      if (start >= end) return [];
      const [low, high] = [sorted[start], sorted[end - 1]];
      let [from, to] = [0, start];
      while (from < to) { const middle = (from + to) >> 1; if (sorted[middle] < low) from = middle + 1; else to = middle; }
      let skip = start - from;
      const [between, last] = [[], []];
      for (let nth = 0; nth < rows.length; nth++) {
        const value = values[nth];
        if (value === low && skip-- > 0) continue;
        if (value >= low && value < high) between.push(nth);
        else if (value === high && last.length < PAGE) last.push(nth);
      }
      return between.concat(last).sort((a, b) => (values[a] < values[b] ? -1 : values[a] > values[b] ? 1 : a - b)).slice(0, end - start).map((nth) => rows[nth]);
    };
    // Returns the position of each name in the order of names; equal names have equal positions. Computed once, since it takes long.
    const ranked = (names) => {
      let ranks = null;
      return () => {
        if (ranks) return ranks;
        // Most names are one of few words with a number at the end: only the words are compared as texts.
        const [words, numbers] = [new Map(), new Float64Array(names.length)];
        const wordOf = Array.from(names, (name, nth) => {
          let end = name.length;
          while (end && name.length - end < 15 && name.charCodeAt(end - 1) >= 48 && name.charCodeAt(end - 1) <= 57) end--;
          numbers[nth] = end < name.length ? Number(name.slice(end)) : -1;
          const word = name.slice(0, end);
          words.set(word, 0);
          return word;
        });
        [...words.keys()].sort(new Intl.Collator("en", { numeric: true }).compare).forEach((word, nth) => words.set(word, nth));
        const places = Float64Array.from(wordOf, (word) => words.get(word));
        const compared = (a, b) => places[a] - places[b] || numbers[a] - numbers[b];
        const sorted = Uint32Array.from(names.keys()).sort((a, b) => compared(a, b) || a - b);
        ranks = new Float64Array(names.length);
        sorted.forEach((one, nth) => { ranks[one] = nth && compared(one, sorted[nth - 1]) === 0 ? ranks[sorted[nth - 1]] : nth; });
        return ranks;
      };
    };
    const [jobRanks, userRanks] = [ranked(columns.job), ranked(users)];
    const drawJobs = () => {
      const policy = Number(of.value);
      const { by, down } = state.sort;
      const word = search.value.trim().toLowerCase();
      const keys = { submit: (one) => columns.submit_ms[one], tasks: (one) => columns.tasks[one], wait: (one) => wait(policy, one), completion: (one) => completion(policy, one), slowdown: (one) => slowdown(policy, one) };
      const found = word ? filtered.filter((one) => columns.job[one].toLowerCase().includes(word)) : filtered.slice();
      const pages = Math.max(1, Math.ceil(found.length / PAGE));
      state.page = Math.min(Math.max(0, state.page), pages - 1);
      if (by === "job") keys.job = (one) => jobRanks()[one];
      if (by === "user") keys.user = (one) => userRanks()[columns.user[one]];
      const page = pageOf(found, keys[by], down, state.page * PAGE);
      const list = [{ key: "job", text: "job" }, { key: "user", text: "user" }, { key: "tasks", text: "tasks", numeric: true }, { key: "submit", text: `submitted (${clock.unit})`, numeric: true },
        { key: "wait", text: "wait (s)", numeric: true }, { key: "completion", text: "completion (s)", numeric: true }, { key: "slowdown", text: "slowdown", numeric: true }];
      const body = make("tbody", {}, ...[...page].map((one) => {
        const pick = make("button", { type: "button", className: "link", textContent: columns.job[one] });
        pick.dataset.key = `job ${one}`;
        pick.addEventListener("click", () => change({ job: one }, "story"));
        const times = [wait(policy, one), completion(policy, one), slowdown(policy, one)].map(number);
        const cells = [number(columns.tasks[one]), moment(columns.submit_ms[one] / 1000).split(" ")[0], ...times];
        return make("tr", {}, make("td", {}, pick), make("td", { textContent: users[columns.user[one]] }), ...cells.map((text) => make("td", { className: "number", textContent: text })));
      }));
      replace(jobHost, make("table", {}, heads(list, state.sort, (sort) => change({ sort, page: 0 }, "table")), body));
      place.textContent = `page ${state.page + 1} of ${pages}`;
      back.disabled = state.page === 0;
      next.disabled = state.page >= pages - 1;
    };
    views.push({ on: ["jobs", "table"], draw: drawJobs, node: jobCard });
    const drawStory = () => {
      story.replaceChildren();
      const one = state.job;
      if (one < 0) return;
      const name = columns.job[one];
      const run = data.runs[columns.run[one]];
      const submit = columns.submit_ms[one] / 1000;
      story.append(make("h4", { textContent: `Job ${name} of user ${users[columns.user[one]]}` }));
      story.append(make("p", { textContent: `${plain(columns.tasks[one], 0)} tasks, submitted at ${moment(submit)}; on an empty cluster it takes ${number(columns.ideal_ms[one] / 1000)} s.${data.seeds[run] === null ? "" : ` Seed ${data.seeds[run]}.`}` }));
      const body = shown().map((policy) => {
        const [waited, done] = [wait(policy.at, one), completion(policy.at, one)];
        const points = [submit + waited, submit + done].map((time) => (Number.isFinite(time) ? moment(time).split(" ")[0] : "–"));
        return [policy.name, number(waited), ...points, number(done), number(slowdown(policy.at, one))];
      });
      story.append(make("div", { className: "scroll", tabIndex: 0 }, simpleTable(["policy", "wait (s)", `start (${clock.unit})`, `end (${clock.unit})`, "completion (s)", "slowdown"], body, 1)));
      for (const told of data.stories.filter((told) => told.job === name && told.run === run)) {
        const policy = policies.find((policy) => policy.name === told.policy);
        if (!policy || !state.shown.has(policy.at)) continue;
        story.append(make("h4", { textContent: `Under ${told.policy}` }), make("p", { textContent: told.sentences.join(" ") }));
        const rows = told.intervals.map(([from, to, reason]) => [reason, ...[from, to].map((time) => moment(time).split(" ")[0]), number(to - from)]);
        if (rows.length) story.append(make("details", {}, make("summary", { textContent: `${rows.length} interval${rows.length > 1 ? "s" : ""}` }),
          make("div", { className: "scroll", tabIndex: 0 }, simpleTable(["reason", `from (${clock.unit})`, `to (${clock.unit})`, "length (s)"], rows, 1))));
      }
      const quoted = (text) => (/^[\w.:@%+,/-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);
      const policy = policies[Number(of.value)].name;
      story.append(make("p", { textContent: "All reasons, with this folder of results:" }),
        make("pre", {}, make("code", { textContent: `plimsoll why . ${quoted(name)} --policy ${quoted(policy)}${run ? ` --run ${run}` : ""}` })));
    };
    views.push({ on: ["story", "policies"], draw: drawStory });
  }
  views.push({ on: ["theme"], draw: paintSwatches });
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; change({}, "theme"); } });
  change({}, "all", "jobs");
})();
