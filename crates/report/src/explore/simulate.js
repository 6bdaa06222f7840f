"use strict";
// The part of the report that simulates: controls, a worker with the engine, and the new values beside the stored ones. It needs the data of
// the interactive part; the scripts of that part precede this one.
(async () => {
  const section = document.getElementById("simulate");
  const headerText = document.getElementById("explore-header");
  if (!section || !headerText || !("DecompressionStream" in window) || !("WebAssembly" in window)) return;
  const header = JSON.parse(headerText.textContent);
  const text = (name) => document.getElementById(`simulate-${name}`).textContent;
  const plan = JSON.parse(text("controls"));
  const unpack = async (name) => {
    const packed = Uint8Array.from(atob(text(name).trim()), (one) => one.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };

  // --- Elements ---------------------------------------------------------------------------------------------------------------------
  const { make, labelled, number, unitText, ink } = pageElements;
  const inUnit = (value, unit) => (unit === "share" ? 100 * value : value);

  section.hidden = false;
  document.querySelector("nav a[href='#simulate']").hidden = false;
  const root = make("div", { className: "explore" });
  section.append(root);
  const card = (title, className, ...children) => {
    const node = make("section", { className: `card view ${className}` }, make("h3", { textContent: title }), ...children);
    node.setAttribute("aria-label", title);
    root.append(node);
    return node;
  };

  // --- Tables as CSV ----------------------------------------------------------------------------------------------------------------
  const rowsOf = (csv) => {
    const rows = [[]];
    const fields = /("(?:[^"]|"")*"|[^,\n]*)(,|\n|$)/gy;
    for (let found = fields.exec(csv); found && found.index < csv.length; found = fields.exec(csv)) {
      const field = found[1];
      rows[rows.length - 1].push(field[0] === '"' ? field.slice(1, -1).replaceAll('""', '"') : field);
      if (found[2] === "\n") rows.push([]);
    }
    return rows.filter((row) => row.length);
  };
  const columnsOf = (csv) => {
    const [names, ...rows] = rowsOf(csv);
    return Object.fromEntries(names.map((name, at) => [name, rows.map((row) => row[at])]));
  };
  const value = (field) => (field === undefined || field === "" ? NaN : Number(field));

  // --- Controls ---------------------------------------------------------------------------------------------------------------------
  const stored = new Map(plan.stored);
  const names = [...stored.keys()];
  let timer = 0;
  const automatic = make("input", { type: "checkbox", checked: true });
  const changed = () => {
    clearTimeout(timer);
    if (automatic.checked) timer = setTimeout(start, 500);
  };
  // A slider and a field for the same number.
  const bound = (title, first, least, most, step, show) => {
    const range = make("input", { type: "range", min: String(least), max: String(most), step: String(step), value: String(first) });
    const field = make("input", { type: "number", min: String(least), step: "any", value: String(first) });
    field.setAttribute("aria-label", `${title}, typed`);
    const about = make("output", {});
    const update = (from, to) => {
      to.value = from.value;
      about.textContent = show ? show(Number(field.value)) : "";
      range.setAttribute("aria-valuetext", `${field.value}${about.textContent ? `, ${about.textContent}` : ""}`);
    };
    range.addEventListener("input", () => { update(range, field); changed(); });
    field.addEventListener("input", () => { update(field, range); changed(); });
    update(field, range);
    const set = (next) => { field.value = String(next); update(field, range); };
    return { field, set, node: make("div", {}, labelled(title, range), make("div", { className: "bound" }, field, about)) };
  };
  const known = make("datalist", { id: "simulate-policies" }, ...[...names, ...plan.others].map((name) => make("option", { value: name })));
  const policy = make("input", { type: "text", value: names[0], list: "simulate-policies", oninput: changed });
  const baseline = make("select", { onchange: () => show() }, ...names.map((name) => make("option", { value: name, textContent: name })));
  const load = bound("Load, times that of the plan", 1, 0.1, 3, 0.05, (times) => (plan.load ? `offered load ${number(100 * times * plan.load)} % of the plan's machines` : ""));
  const machines = plan.machines_fixed ? [] : plan.machines.map(([title, count]) => bound(`Machines with ${title}`, count, 1, 3 * count, 1));
  const few = plan.users.length === plan.user_count || plan.weights_fixed !== null;
  const weights = few ? plan.users.map(([name, weight]) => bound(`Weight of ${name}`, weight, 0.1, Math.max(10, 2 * weight), 0.1)) : [];
  const lines = make("textarea", { rows: 3, cols: 24, placeholder: "user,weight", oninput: changed });
  const run = make("button", { type: "button", textContent: "Run", onclick: () => start() });
  const cancel = make("button", { type: "button", textContent: "Cancel", disabled: true, onclick: () => stop("The run was cancelled.") });
  const reset = make("button", { type: "button", textContent: "As in the plan" });
  const bar = make("progress", { max: 1, value: 0, hidden: true });
  bar.setAttribute("aria-label", "Progress of the run");
  const status = make("p", { className: "legend" });
  status.setAttribute("role", "status");
  const seed = plan.seed === null ? "the trace" : `seed ${plan.seed}`;
  const fixed = plan.machines_fixed ? [make("p", { className: "legend", textContent: `The machines cannot be changed here: ${plan.machines_fixed}.` })] : [];
  if (plan.weights_fixed) fixed.push(make("p", { className: "legend", textContent: `The weights cannot be changed here: ${plan.weights_fixed}.` }));
  const refused = plan.refused.map(([name, why]) => make("p", { className: "legend", textContent: `${name} cannot be simulated here: ${why}` }));
  root.append(make("div", { className: "card controls" }, known,
    make("p", { className: "legend", textContent: `A run of ${seed} in this browser, with the rows of the plan's first run. It is one run: a difference can be chance, and the intervals of the report do not apply to it.` }),
    make("div", { className: "row" }, labelled("Policy", policy), labelled("Compare with the stored run of", baseline), load.node, ...machines.map((one) => one.node)),
    ...fixed, ...refused,
    make("div", { className: "row" }, ...(few ? weights.map((one) => one.node) : [labelled("Weights, a line with user,weight for each", lines)])),
    make("div", { className: "row" }, run, cancel, reset, make("label", { className: "chip" }, automatic, make("span", { textContent: "Run after each change" })), bar), status));
  reset.addEventListener("click", () => {
    policy.value = names[0];
    baseline.value = names[0];
    load.set(1);
    machines.forEach((one, at) => one.set(plan.machines[at][1]));
    weights.forEach((one, at) => one.set(plan.users[at][1]));
    lines.value = "";
    start();
  });
  const wanted = () => {
    const changes = { policy: policy.value.trim() };
    if (Number(load.field.value) !== 1) changes.load = load.field.value;
    if (machines.some((one, at) => Number(one.field.value) !== plan.machines[at][1])) changes.machines = machines.map((one) => Number(one.field.value));
    if (few) changes.weights = plan.users.map(([name, weight], at) => [name, weight, weights[at].field.value]).filter(([, weight, now]) => Number(now) !== weight).map(([name, , now]) => [name, now]);
    else changes.weights = lines.value.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
      const comma = line.lastIndexOf(",");
      return comma < 0 ? ["", line] : [line.slice(0, comma).trim(), line.slice(comma + 1).trim()];
    });
    return changes;
  };

  // --- The worker -------------------------------------------------------------------------------------------------------------------
  // `turn` identifies the last request; older ones are ignored. `waiting` receives its tables, and `isBusy` is whether the engine has it.
  let [worker, opening, waiting, isBusy, began, turn] = [null, null, null, false, 0, 0];
  const say = (state, words) => {
    section.dataset.state = state;
    status.textContent = words;
    const busy = state === "running";
    [cancel.disabled, bar.hidden] = [!busy, !busy];
  };
  const stop = (words) => {
    clearTimeout(timer);
    turn++;
    if (worker) worker.terminate();
    [worker, opening, waiting, isBusy] = [null, null, null, false];
    say("idle", words);
  };
  const fail = (words) => {
    stop(words);
    section.dataset.state = "error";
  };
  const open = async () => {
    const url = URL.createObjectURL(new Blob([text("worker")], { type: "text/javascript" }));
    const opened = new Worker(url);
    opened.addEventListener("message", ({ data }) => { if (opened === worker) receive(data); });
    opened.addEventListener("error", ({ message }) => { if (opened === worker) fail(`The engine cannot be loaded: ${message}`); });
    worker = opened;
    const [module, input] = await Promise.all([unpack("module"), unpack("input")]);
    URL.revokeObjectURL(url);
    opened.postMessage({ module, input });
  };
  const send = async (changes, done) => {
    const own = ++turn;
    waiting = done;
    say("running", "The engine is being loaded.");
    bar.value = 0;
    try {
      opening = opening || open();
      await opening;
    } catch (error) {
      if (own === turn) fail(`The engine cannot be loaded: ${error.message}`);
      return;
    }
    if (own !== turn) return;
    [isBusy, began] = [true, performance.now()];
    worker.postMessage({ changes });
  };
  const receive = ({ tables, error, seconds, launched }) => {
    if (launched !== undefined) {
      bar.value = plan.tasks ? Math.min(1, launched / plan.tasks) : 0;
      status.textContent = `${number(seconds)} s simulated, ${number(launched)} of ${number(plan.tasks)} tasks launched.`;
    } else if (error !== undefined) {
      fail(`The run ended with an error: ${error}`);
    } else if (waiting) {
      const done = waiting;
      [waiting, isBusy] = [null, false];
      done(tables, (performance.now() - began) / 1000);
    }
  };
  // Stored runs again, for their jobs and values over time, by policy. Their rows must equal the stored ones.
  const again = new Map();
  let [now, time, ran] = [null, 0, ""];
  function start() {
    clearTimeout(timer);
    if (isBusy) stop("");
    const changes = wanted();
    const unnamed = changes.weights.find(([user]) => !user);
    if (unnamed) return fail(`'${unnamed[1]}' is not accepted as a weight; expected a line such as alice,2`);
    send(changes, (tables, seconds) => {
      [now, time, ran] = [tables, seconds, changes.policy];
      section.tables = tables;
      show();
    });
  }
  const compared = () => {
    const name = baseline.value;
    if (again.has(name)) return again.get(name);
    send({ policy: name }, (tables) => {
      again.set(name, tables);
      show();
    });
    return null;
  };

  // --- Results ----------------------------------------------------------------------------------------------------------------------
  const metrics = make("div", { className: "scroll", tabIndex: 0 });
  const more = make("div", { className: "scroll", tabIndex: 0 });
  const saved = make("div", { className: "row" });
  const overTime = make("div", { className: "chart", role: "img" });
  const spread = make("div", { className: "chart", role: "img" });
  const shownSeries = make("select", { onchange: () => show() }, ...header.series.map((one, at) => make("option", { value: String(at), textContent: one.title + unitText(one.unit) })));
  const results = [
    card("New values beside the stored ones", "wide", metrics, make("details", {}, make("summary", { textContent: "Other metrics" }), more), saved),
    card("Over time", "", make("div", { className: "row" }, labelled("Series", shownSeries)), overTime),
    card("Distribution of completion times", "", spread),
  ];
  results.forEach((one) => { one.hidden = true; });
  const table = (list, before, after) => {
    const cell = (words) => make("td", { className: "number", textContent: words });
    const rows = list.map((metric) => {
      const [old, next] = [before, after].map((columns) => inUnit(value((columns[metric.column] || [])[0]), metric.unit));
      const share = old !== 0 && Number.isFinite(next - old) ? `${number((100 * (next - old)) / Math.abs(old))} %` : "–";
      return make("tr", {}, make("td", { textContent: metric.title + unitText(metric.unit), title: metric.about }), cell(number(old)), cell(number(next)), cell(number(next - old)), cell(share));
    });
    const heads = ["metric", `stored: ${baseline.value}`, `new: ${ran}`, "difference", "relative"];
    return make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((words, at) => make("th", { textContent: words, className: at ? "number" : "" })))), make("tbody", {}, ...rows));
  };
  const chart = (host, axes, series, values, scales) => {
    host.replaceChildren();
    const axis = ({ label }) => ({ label, stroke: ink("--ink"), grid: { stroke: ink("--mesh") }, ticks: { stroke: ink("--mesh") } });
    const lines = series.map((label, at) => ({ label, stroke: at ? ink("--link") : ink("--soft"), width: at ? 2 : 1.5, dash: at ? [] : [6, 4], spanGaps: true, points: { show: false } }));
    return new uPlot({ width: Math.max(280, host.clientWidth - 16), height: 260, axes: axes.map(axis), series: [{ label: axes[0].label }, ...lines], scales }, values, host);
  };
  const times = (tables) => {
    const { submit_us: submits, finish_us: ends } = columnsOf(tables.jobs);
    return Float64Array.from(submits.map((submit, at) => (value(ends[at]) - value(submit)) / 1e6).filter(Number.isFinite)).sort();
  };
  const below = (sorted, limit) => {
    let [from, to] = [0, sorted.length];
    while (from < to) { const middle = (from + to) >> 1; if (sorted[middle] <= limit) from = middle + 1; else to = middle; }
    return from;
  };
  function show() {
    if (!now || waiting) return;
    const before = compared();
    if (!before) return;
    const differs = before.runs !== stored.get(baseline.value);
    const [old, next] = [columnsOf(stored.get(baseline.value)), columnsOf(now.runs)];
    results.forEach((one) => { one.hidden = false; });
    const listed = header.metrics.filter((metric) => metric.column in next);
    metrics.replaceChildren(table(listed.filter((metric) => metric.key), old, next));
    more.replaceChildren(table(listed.filter((metric) => !metric.key), old, next));
    saved.replaceChildren(...Object.entries(now).map(([name, csv]) => make("button", {
      type: "button", textContent: `Save ${name}.csv`,
      onclick: () => {
        const url = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
        make("a", { href: url, download: `${name}.csv` }).click();
        setTimeout(() => URL.revokeObjectURL(url), 1000);
      },
    })));
    const labels = [`stored: ${baseline.value}`, `new: ${ran}`];
    const one = header.series[Number(shownSeries.value)];
    const series = [before, now].map((tables) => columnsOf(tables.fairness)).map((columns) => [
      (columns.time_us || []).map((us) => Number(us) / 1e6),
      (columns[one ? one.column : ""] || []).map((field) => (field === "" ? null : inUnit(Number(field), one.unit))),
    ]);
    results[1].hidden = !one || series.some(([, values]) => !values.length);
    if (!results[1].hidden) {
      chart(overTime, [{ label: "Time (s)" }, { label: one.title + unitText(one.unit) }], labels, uPlot.join(series), { x: { time: false } });
      overTime.setAttribute("aria-label", `${one.title} over time, stored and new`);
    }
    const sorted = [before, now].map(times);
    results[2].hidden = sorted.some((all) => !all.length);
    if (!results[2].hidden) {
      const low = Math.max(1e-3, Math.min(...sorted.map((all) => all[0])));
      const high = Math.max(...sorted.map((all) => all[all.length - 1]), low * 1.001);
      const grid = Array.from({ length: 201 }, (_, nth) => low * (high / low) ** (nth / 200));
      chart(spread, [{ label: "Completion time (s)" }, { label: "Jobs (%)" }], labels, [grid, ...sorted.map((all) => grid.map((limit) => (100 * below(all, limit)) / all.length))], { x: { time: false, distr: 3 }, y: { range: [0, 100] } });
      const median = (all) => number(all[Math.max(0, Math.ceil(all.length / 2) - 1)]);
      spread.setAttribute("aria-label", `Distribution of completion times: medians ${median(sorted[0])} s stored and ${median(sorted[1])} s new`);
    }
    const doubt = differs ? " The engine does not repeat the stored run, so the values must not be compared: the results are of another version." : "";
    say("done", `${number(time)} s for the run.${doubt}`);
  }
  // Charts have the colours of the theme.
  new MutationObserver(() => show()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show());
  say("idle", `Change a value or press Run. The stored values are those of ${seed}.`);
})();
