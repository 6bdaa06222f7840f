"use strict";
// The timeline of the interactive part, on a canvas. `page` has the functions and the state of explore.js.
//
// A lane is a user, a range of job sizes, or a machine. Each pixel column of a lane has at most one rectangle: its height is the mean amount
// in the time of the column. If the items in view fit beside each other, each has a bar in a row of its lane instead, and each pixel
// column of a row has at most one rectangle. The amounts of a draw are sums of differences, so that the work grows with the number of
// items plus the number of pixels, and not with their product.
const addTimeline = (page) => {
  const { data, columns, users, state, change, make, option, labelled, number, plain, clock, moment } = page;
  const LANE = 32;
  const ROWS_MOST = 8;
  const AXIS = 26;
  const LIGHT = ["#0067a3", "#b34700", "#007353", "#9a3a7c", "#7d6000", "#4646a8", "#a11d33", "#17747f", "#547200", "#6b4c2f"];
  const DARK = ["#56b4e9", "#f0a35e", "#3fc8a0", "#e08fc4", "#e6c34a", "#a5a5f2", "#f28b98", "#6fd3df", "#b5d05c", "#c8a682"];
  const QUANTITIES = { tasks: "running tasks", jobs: "running jobs", waiting: "waiting jobs" };

  // --- Items -------------------------------------------------------------------------------------------------------------------------
  // Time is in seconds. An item without an end lasts until the end of the run; one without a start has no place.
  const jobs = columns.job.length;
  const seconds = (name) => Float64Array.from(columns[name], (ms) => ms / 1000);
  const submit = seconds("submit_ms");
  let last = 0;
  for (const policy of page.policies) {
    const [wait, ran] = [columns[`wait_ms:${policy.at}`], columns[`ran_ms:${policy.at}`]];
    for (let row = 0; row < jobs; row++) {
      // The last known instant of the job: its end, its start or its submission.
      const end = submit[row] + [wait[row] + ran[row], wait[row], 0].find((ms) => ms >= 0) / 1000;
      if (end > last) last = end;
    }
    const grid = columns[`time_us:${policy.at}`];
    if (grid && grid.length) last = Math.max(last, grid[grid.length - 1] / 1e6);
  }
  last = last || 1;
  const bin = Uint8Array.from(columns.tasks, (tasks) => data.bins.filter(([, most]) => most !== null && most < tasks).length);
  const machines = data.withTasks.length ? Math.max(...data.withTasks.map((policy) => columns[`task_machine:${policy}`].reduce((most, one) => Math.max(most, one), -1))) + 1 : 0;
  const kinds = { user: ["Users", users.length, (lane) => users[lane], columns.user], size: ["Job sizes", data.bins.length, (lane) => `${data.bins[lane][0]} tasks`, bin] };
  if (machines) kinds.machine = ["Machines", machines, (lane) => `machine ${lane}`, null];
  let shape = { kind: "user", quantity: "tasks", policy: page.baseline, first: 0, slot: 0, item: -1, byKey: false };
  const cache = new Map();
  // Returns the intervals of a policy: starts, ends, amounts, lanes and the rows of their jobs.
  const items = () => {
    const run = Math.max(0, state.run);
    const key = `${shape.kind} ${shape.kind === "machine" ? "" : `${shape.quantity} ${run}`} ${shape.policy}`;
    if (!cache.has(key)) {
      if (cache.size > 6) cache.clear();
      cache.set(key, shape.kind === "machine" ? ofTasks(shape.policy) : ofJobs(shape.policy, shape.quantity, kinds[shape.kind][3], run));
    }
    return cache.get(key);
  };
  const ofJobs = (policy, quantity, lane, run) => {
    const [wait, ran] = [columns[`wait_ms:${policy}`], columns[`ran_ms:${policy}`]];
    const [start, end, amount] = [new Float64Array(jobs).fill(NaN), new Float64Array(jobs), new Float64Array(jobs).fill(1)];
    for (let row = 0; row < jobs; row++) {
      if (columns.run[row] !== run) continue;
      const launched = submit[row] + wait[row] / 1000;
      const done = launched + ran[row] / 1000;
      if (quantity === "waiting") {
        start[row] = submit[row];
        end[row] = launched >= 0 ? launched : last;
        if (!(end[row] > start[row])) start[row] = NaN;
        continue;
      }
      start[row] = launched;
      end[row] = done >= 0 ? done : last;
      // The mean number of running tasks between the first start and the end.
      if (quantity === "tasks") amount[row] = ran[row] > 0 && columns.work_s[row] >= 0 ? (1000 * columns.work_s[row]) / ran[row] : columns.tasks[row] || 1;
    }
    return { count: jobs, start, end, amount, lane, row: null };
  };
  const ofTasks = (policy) => {
    const of = (name) => columns[`task_${name}:${policy}`] || new Float64Array(0);
    const [start, ran, lane, row] = [of("start_ms").map((ms) => ms / 1000), of("ran_ms"), of("machine"), of("job")];
    const end = start.map((from, nth) => (Number.isFinite(ran[nth]) ? from + ran[nth] / 1000 : last));
    return { count: start.length, start, end, amount: new Float64Array(start.length).fill(1), lane, row };
  };
  const jobOf = (all, item) => (all.row ? all.row[item] : item);
  // Returns the row of each item in its lane: the first one that is free; 255 if there is none.
  const rowsOf = (all) => {
    if (all.rows) return all.rows;
    // A number has the start in its upper 32 bits and the item in its lower 21 bits, because plain numbers are sorted fastest.
    const part = 4294967295 / Math.max(last, 4294967.295);
    const order = Float64Array.from({ length: all.count }, (_, item) => (Number.isFinite(all.start[item]) ? Math.round(part * all.start[item]) * 2097152 + item : Infinity)).sort();
    const ends = new Float64Array(kinds[shape.kind][1] * ROWS_MOST);
    all.rows = new Uint8Array(all.count).fill(255);
    for (const key of order) {
      if (key === Infinity) break;
      const item = key % 2097152;
      const from = all.lane[item] * ROWS_MOST;
      for (let row = 0; row < ROWS_MOST; row++) {
        if (ends[from + row] > all.start[item]) continue;
        ends[from + row] = all.end[item];
        all.rows[item] = row;
        break;
      }
    }
    return all.rows;
  };
  // The selected items of the shown seed, and the lanes with some of them: machines by number, sizes by size, users by their amounts.
  let selected = { list: new Uint32Array(0), lanes: [], key: "" };
  let filters = 0;
  const select = () => {
    const all = items();
    const key = `${filters} ${shape.kind} ${shape.quantity} ${shape.policy}`;
    if (selected.key === key) return selected;
    const run = Math.max(0, state.run);
    const [list, sums] = [new Uint32Array(all.count), new Float64Array(kinds[shape.kind][1])];
    let count = 0;
    const add = (item) => {
      if (!(all.start[item] >= 0) || !(all.lane[item] >= 0)) return;
      list[count++] = item;
      sums[all.lane[item]] += Math.max(1e-9, all.amount[item] * (all.end[item] - all.start[item]));
    };
    const rows = page.filtered();
    if (all.row) {
      const chosen = new Uint8Array(jobs);
      for (const row of rows) chosen[row] = 1;
      // Tasks are those of the first seed.
      if (run === 0) for (let item = 0; item < all.count; item++) if (chosen[all.row[item]]) add(item);
    } else {
      for (const row of rows) if (columns.run[row] === run) add(row);
    }
    const lanes = [];
    sums.forEach((sum, lane) => { if (sum > 0) lanes.push(lane); });
    if (shape.kind === "user") lanes.sort((a, b) => sums[b] - sums[a] || a - b);
    selected = { list: list.subarray(0, count), lanes, key };
    return selected;
  };

  // --- Elements ----------------------------------------------------------------------------------------------------------------------
  const pick = (name, text, options) => {
    const node = make("select", { onchange: () => { Object.assign(shape, { [name]: name === "policy" ? Number(node.value) : node.value, first: 0, slot: 0, item: -1 }); describe(); change({}, "lanes"); } });
    node.append(...options.map(([value, words]) => option(value, words)));
    node.value = String(shape[name]);
    return labelled(text, node);
  };
  const policyField = pick("policy", "Policy", page.policies.map((policy) => [policy.at, policy.name]));
  const kindField = pick("kind", "Lanes", Object.entries(kinds).map(([key, [words]]) => [key, words]));
  const amountField = pick("quantity", "Amount", Object.entries(QUANTITIES).map(([key, words]) => [key, page.capital(words)]));
  const press = (text, name, action) => {
    const node = make("button", { type: "button", textContent: text, onclick: action });
    // A visible word is a part of the accessible name.
    node.setAttribute("aria-label", /[a-z]/.test(text) ? `${text}: ${name}` : name);
    return node;
  };
  const canvas = make("canvas", { tabIndex: 0, className: "timeline" });
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-roledescription", "timeline");
  canvas.setAttribute("aria-describedby", "timeline-keys");
  const host = make("div", { className: "chart" }, canvas);
  const info = make("p", { className: "legend job-info" });
  info.setAttribute("aria-live", "polite");
  const about = make("p", { className: "legend" });
  const keys = make("p", { className: "legend", id: "timeline-keys" });
  keys.textContent = "Click or Tab into the timeline first. Wheel, + and −: zoom. Drag, ← and →: move. 0: all. ↑ and ↓: lane. Shift with ← or →: previous or next job of the lane. Enter or a click: the job's story.";
  const legend = make("p", { className: "legend users" });
  const table = make("div", { className: "scroll", tabIndex: 0 });
  table.setAttribute("role", "group");
  table.setAttribute("aria-label", "The lanes in view");
  const details = make("details", { ontoggle: () => change({}, "lanes") }, make("summary", { textContent: "As a table" }), table);
  const move = (factor, by) => {
    const [from, to] = view();
    const [middle, half] = [(from + to) / 2 + by * (to - from), ((to - from) / 2) * factor];
    look(middle - half, middle + half);
  };
  const bar = make("div", { className: "row" }, policyField, kindField, amountField,
    make("div", { className: "buttons" }, press("+", "Zoom in", () => move(0.5, 0)), press("−", "Zoom out", () => move(2, 0)), press("←", "Earlier", () => move(1, -0.25)),
      press("→", "Later", () => move(1, 0.25)), press("All", "the whole time", () => look(0, last)), press("To the selection", "zoom to the selected time", () => look(state.from ?? 0, state.to ?? last)),
      press("Select this time", "the jobs submitted in this part of the time", () => page.setWindow(...(state.view || [null, null])))));
  const up = press("↑", "Lanes before", () => scroll(-laneCount()));
  const down = press("↓", "Lanes after", () => scroll(laneCount()));
  const place = make("span", { className: "place" });
  const node = page.card("Timeline", bar, host, info, legend, about, make("div", { className: "row" }, up, place, down), keys, details);
  node.classList.add("wide");

  // --- View --------------------------------------------------------------------------------------------------------------------------
  const view = () => state.view || [0, last];
  const look = (from, to) => {
    const length = Math.min(last, Math.max(to - from, 1e-3 * Math.min(1, last)));
    const start = Math.min(Math.max(0, (from + to - length) / 2), last - length);
    change({ view: length >= last ? null : [start, start + length] }, "view");
  };
  const laneCount = () => (innerHeight < 700 || innerWidth < 500 ? 8 : 12);
  const shownLanes = () => select().lanes.slice(shape.first, shape.first + laneCount());
  const scroll = (by) => {
    shape.first = Math.min(Math.max(0, shape.first + by), Math.max(0, select().lanes.length - laneCount()));
    shape.slot = 0;
    shape.item = -1;
    change({}, "lanes");
  };
  const gutter = () => Math.min(150, Math.round(0.26 * (host.clientWidth || 640)));
  // The bars of the last draw, for the search of the item at a point.
  let drawn = null;
  const isDark = () => { const paper = page.ink("--paper"); return parseInt(paper.slice(1, 3), 16) < 128; };
  const userRank = new Uint32Array(users.length).fill(users.length);
  {
    const sums = new Float64Array(users.length);
    for (let row = 0; row < jobs; row++) sums[columns.user[row]] += columns.work_s[row] || 1;
    [...sums.keys()].sort((a, b) => sums[b] - sums[a] || a - b).forEach((user, rank) => { userRank[user] = rank; });
  }
  // Lanes of users have names, so that colours may repeat; other lanes have distinct colours for the largest users only.
  const paint = (user, palette, other) => (shape.kind === "user" ? palette[userRank[user] % palette.length] : userRank[user] < palette.length ? palette[userRank[user]] : other);

  const draw = () => {
    const all = items();
    const { list, lanes } = select();
    const shown = shownLanes();
    const quantity = shape.kind === "machine" ? "running tasks" : QUANTITIES[shape.quantity];
    amountField.hidden = shape.kind === "machine";
    const [from, to] = view();
    const ratio = Math.min(3, devicePixelRatio || 1);
    const css = Math.max(260, (host.clientWidth || 640) - 20);
    const [width, height] = [Math.round(css * ratio), Math.round((LANE * Math.max(1, shown.length) + AXIS) * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      [canvas.width, canvas.height] = [width, height];
      canvas.style.width = `${css}px`;
      canvas.style.height = `${height / ratio}px`;
    }
    const left = Math.round(gutter() * ratio);
    const plot = width - left;
    const lane = LANE * ratio;
    const scale = plot / (to - from);
    const slots = new Int16Array(kinds[shape.kind][1]).fill(-1);
    shown.forEach((one, slot) => { slots[one] = slot; });

    // The items in view, and whether they fit as bars.
    const rows = rowsOf(all);
    const inView = new Uint32Array(list.length);
    const tops = new Uint8Array(shown.length);
    const found = shown.map(() => 0);
    let count = 0;
    let fits = true;
    for (const item of list) {
      const slot = slots[all.lane[item]];
      if (slot < 0 || all.end[item] < from || all.start[item] > to) continue;
      inView[count++] = item;
      found[slot]++;
      if (rows[item] === 255) fits = false;
      else if (rows[item] >= tops[slot]) tops[slot] = rows[item] + 1;
    }
    if (count > 2 * plot) fits = false;
    const context = canvas.getContext("2d");
    const [palette, other, edge, mesh, text, soft] = [isDark() ? DARK : LIGHT, page.ink("--edge"), page.ink("--line"), page.ink("--mesh"), page.ink("--ink"), page.ink("--soft")];
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = page.ink("--paper");
    context.fillRect(0, 0, width, height);

    // The axis.
    context.font = `${Math.round(12 * ratio)}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.textAlign = "center";
    for (const tick of page.ticks(from / clock.seconds, to / clock.seconds, Math.max(2, Math.floor(plot / ratio / 110)))) {
      const x = left + Math.round((tick * clock.seconds - from) * scale);
      if (x < left || x > width) continue;
      context.fillStyle = mesh;
      context.fillRect(x, 0, Math.max(1, ratio | 0), height - AXIS * ratio);
      const label = `${plain(tick, 6)} ${clock.unit}`;
      const half = context.measureText(label).width / 2;
      context.fillStyle = text;
      context.fillText(label, Math.min(Math.max(x, left + half), width - half), height - (AXIS / 2) * ratio);
    }
    // The selected time.
    if (state.from !== null || state.to !== null) {
      const [x0, x1] = [state.from ?? 0, state.to ?? last].map((time) => left + Math.min(Math.max(0, (time - from) * scale), plot));
      context.fillStyle = page.ink("--link");
      context.globalAlpha = 0.14;
      context.fillRect(x0, 0, x1 - x0, height - AXIS * ratio);
      context.globalAlpha = 1;
    }

    // The bars or the amounts.
    const body = lane - 4 * ratio;
    let most = 0;
    const means = shown.map(() => 0);
    const peaks = shown.map(() => 0);
    const sums = fits ? null : new Float64Array(shown.length * (plot + 2));
    const steps = fits ? null : new Float64Array(shown.length * (plot + 2));
    const bests = fits || shape.kind !== "machine" ? null : new Float64Array(shown.length * plot);
    const owners = bests && new Uint32Array(bests.length);
    let rectangles = 0;
    const used = fits ? new Int32Array(shown.length * ROWS_MOST).fill(-1) : null;
    const bars = fits ? inView.subarray(0, count).slice().sort((a, b) => all.start[a] - all.start[b] || a - b) : inView.subarray(0, count);
    for (const item of bars) {
      const slot = slots[all.lane[item]];
      const [x0, x1] = [Math.max(0, (all.start[item] - from) * scale), Math.min(plot, (all.end[item] - from) * scale)];
      means[slot] += (all.amount[item] * Math.max(0, x1 - x0)) / plot;
      if (fits) {
        const step = body / tops[slot];
        const [c0, c1] = [Math.floor(x0), Math.max(Math.floor(x0) + 1, Math.round(x1))];
        const at = slot * ROWS_MOST + rows[item];
        const begin = Math.max(c0, used[at]);
        if (begin >= c1) continue;
        used[at] = c1;
        context.fillStyle = paint(columns.user[jobOf(all, item)], palette, other);
        context.fillRect(left + begin, slot * lane + 2 * ratio + rows[item] * step, Math.max(1, c1 - begin - (c1 - begin > 3 ? 1 : 0)), Math.max(1, step - (step > 3 ? 1 : 0)));
        rectangles++;
        continue;
      }
      const base = slot * (plot + 2);
      const [c0, c1] = [Math.floor(x0), Math.floor(x1)];
      const amount = all.amount[item];
      if (c0 === c1) sums[base + c0] += amount * (x1 - x0);
      else {
        sums[base + c0] += amount * (c0 + 1 - x0);
        sums[base + c1] += amount * (x1 - c1);
        steps[base + c0 + 1] += amount;
        steps[base + c1] -= amount;
      }
      if (bests) {
        for (let column = c0; column <= Math.min(c1, plot - 1); column++) {
          const part = Math.min(column + 1, x1) - Math.max(column, x0);
          if (part > bests[slot * plot + column]) [bests[slot * plot + column], owners[slot * plot + column]] = [part, columns.user[all.row[item]]];
        }
      }
    }
    if (!fits) {
      shown.forEach((_, slot) => {
        let level = 0;
        const base = slot * (plot + 2);
        for (let column = 0; column < plot; column++) {
          level += steps[base + column];
          sums[base + column] += level;
          if (sums[base + column] > peaks[slot]) peaks[slot] = sums[base + column];
        }
        most = Math.max(most, peaks[slot]);
      });
      shown.forEach((one, slot) => {
        context.fillStyle = shape.kind === "user" ? paint(one, palette, other) : page.ink("--link");
        const [base, foot] = [slot * (plot + 2), Math.round((slot + 1) * lane - 2 * ratio)];
        // Neighbours of the same height are one rectangle.
        let begin = 0;
        const tall = (column) => (column < plot && sums[base + column] > 1e-9 * most ? Math.max(1, Math.round((body * sums[base + column]) / most)) : 0);
        const owner = (column) => (bests && column < plot ? owners[slot * plot + column] : 0);
        let [size, who] = [tall(0), owner(0)];
        for (let column = 1; column <= plot; column++) {
          const next = tall(column);
          if (next === size && owner(column) === who && column < plot) continue;
          if (size) {
            if (bests) context.fillStyle = paint(who, palette, other);
            context.fillRect(left + begin, foot - size, column - begin, size);
            rectangles++;
          }
          [begin, size, who] = [column, next, owner(column)];
        }
      });
    }
    // Names and lines of the lanes.
    context.textAlign = "left";
    shown.forEach((one, slot) => {
      context.fillStyle = edge;
      context.fillRect(0, Math.round((slot + 1) * lane), width, Math.max(1, ratio | 0));
      context.fillStyle = text;
      let name = kinds[shape.kind][2](one);
      const room = left - 14 * ratio;
      if (context.measureText(name).width > room) {
        while (name.length > 1 && context.measureText(`${name}…`).width > room) name = name.slice(0, -1);
        name += "…";
      }
      if (shape.kind === "user") {
        context.fillStyle = paint(one, palette, other);
        context.fillRect(0, slot * lane + 6 * ratio, 4 * ratio, lane - 12 * ratio);
        context.fillStyle = text;
      }
      context.fillText(name, 8 * ratio, (slot + 0.5) * lane);
    });
    // The focus, and the job of the story.
    const outline = (item, colour) => {
      const slot = slots[all.lane[item]];
      if (slot < 0) return;
      const x = (time) => left + Math.min(Math.max(0, (time - from) * scale), plot);
      const [x0, x1] = [x(all.start[item]), Math.max(x(all.start[item]) + 2 * ratio, x(all.end[item]))];
      const step = fits ? body / tops[slot] : body;
      const y = slot * lane + 2 * ratio + (fits ? rows[item] * step : 0);
      // The wait is a line before the bar.
      const submitted = x(submit[jobOf(all, item)]);
      context.fillStyle = soft;
      if (submitted < x0) context.fillRect(submitted, y + step / 2 - ratio, x0 - submitted, 2 * ratio);
      context.strokeStyle = colour;
      context.lineWidth = 2 * ratio;
      context.strokeRect(x0, y, x1 - x0, Math.max(2 * ratio, step - ratio));
    };
    if (document.activeElement === canvas && shown.length) {
      context.strokeStyle = soft;
      context.lineWidth = ratio;
      context.strokeRect(ratio, shape.slot * lane + ratio, width - 2 * ratio, lane - 2 * ratio);
    }
    if (state.job >= 0 && !all.row && columns.run[state.job] === Math.max(0, state.run) && all.start[state.job] >= 0) outline(state.job, page.ink("--link"));
    if (shape.item >= 0) outline(shape.item, text);

    drawn = { all, shown, slots, rows, tops, fits, left: left / ratio, scale: scale / ratio, from, to, most, body: body / ratio, items: inView.subarray(0, count) };
    canvas.dataset.rectangles = String(rectangles);
    canvas.dataset.level = fits ? "bars" : "amounts";
    canvas.dataset.view = `${from} ${to}`;
    const name = page.policies[shape.policy].name;
    const range = `from ${moment(from)} to ${moment(to)}`;
    canvas.setAttribute("aria-label", `Timeline of ${quantity} under ${name}, ${range}. ` + (shown.length ? shown.slice(0, 5).map((one, slot) => `${kinds[shape.kind][2](one)}: ${plain(found[slot], 0)} in view`).join("; ") : "Nothing is selected") + ".");
    const seed = data.seeds[data.runs[Math.max(0, state.run)]];
    const unit = all.row ? "task" : "job";
    about.textContent = `${seed === null || seed === undefined ? "" : `Seed ${seed}. `}${page.capital(range)}. ` + (fits ? `Each bar is a ${unit}${shape.quantity === "waiting" && !all.row ? " that waits" : ""}, coloured by user.` : `Height: mean of ${quantity} in the time of a pixel, at most ${number(most)}${all.row ? ", coloured by the user of the task with the longest part of it" : ""}. Zoom in to see single ${unit}s.`)
      + (shape.quantity === "tasks" && !all.row && !fits ? " A job counts with its mean number of running tasks." : "");
    if (all.row && state.run > 0) about.textContent = "The tasks on the machines are those of the first seed.";
    legend.replaceChildren();
    if (shape.kind === "machine" || (fits && shape.kind === "size")) {
      const there = new Set();
      for (const item of drawn.items) { there.add(columns.user[jobOf(all, item)]); if (there.size > 40) break; }
      const listed = [...there].sort((a, b) => userRank[a] - userRank[b]).filter((user) => userRank[user] < palette.length);
      legend.append(...listed.map((user) => {
        const mark = page.drawn("svg", { class: "dot", viewBox: "0 0 10 10", "aria-hidden": "true" }, page.drawn("rect", { width: 10, height: 10, fill: paint(user, palette, other) }));
        return make("span", { className: "key" }, mark, users[user]);
      }));
      if (listed.length < there.size) legend.append(make("span", { className: "key" }, page.drawn("svg", { class: "dot", viewBox: "0 0 10 10", "aria-hidden": "true" }, page.drawn("rect", { width: 10, height: 10, fill: other })), "other users"));
    }
    legend.hidden = !legend.childNodes.length;
    const until = Math.min(lanes.length, shape.first + laneCount());
    place.textContent = lanes.length ? `lanes ${shape.first + 1} to ${until} of ${plain(lanes.length, 0)}${shape.kind === "user" ? ", largest first" : ""}` : page.filtered().length ? `nothing to show: no selected job counts as ${quantity}` : "no job is selected";
    [up.disabled, down.disabled] = [shape.first === 0, until >= lanes.length];
    if (details.open) {
      const mean = (slot) => {
        let [sum, waits] = [0, 0];
        for (const item of drawn.items) if (slots[all.lane[item]] === slot) { const wait = page.wait(shape.policy, jobOf(all, item)); if (Number.isFinite(wait)) { sum += wait; waits++; } }
        return sum / waits;
      };
      table.replaceChildren(page.simpleTable([kinds[shape.kind][0].toLowerCase().replace(/s$/, ""), `${unit}s in view`, `mean ${quantity}`, "mean wait (s)"],
        shown.map((one, slot) => [kinds[shape.kind][2](one), plain(found[slot], 0), number(means[slot]), number(mean(slot))]), 1));
    }
  };
  page.views.push({ on: ["jobs"], draw: () => { filters++; Object.assign(shape, { first: 0, slot: 0, item: -1 }); describe(); } });
  page.views.push({ on: ["jobs", "lanes", "view", "theme", "story"], draw, node });

  // --- Focus -------------------------------------------------------------------------------------------------------------------------
  const describe = () => {
    if (shape.item < 0) { info.textContent = " "; return; }
    const all = items();
    const row = jobOf(all, shape.item);
    const waited = page.wait(shape.policy, row);
    const ran = columns[`ran_ms:${shape.policy}`][row] / 1000;
    const task = all.row ? ` A task of it ran here from ${moment(all.start[shape.item])} to ${moment(all.end[shape.item])}.` : "";
    info.textContent = `Job ${columns.job[row]} of user ${users[columns.user[row]]}: ${plain(columns.tasks[row], 0)} task${columns.tasks[row] === 1 ? "" : "s"}, submitted at ${moment(submit[row])}, `
      + (Number.isFinite(waited) ? `waited ${number(waited)} s, ${Number.isFinite(ran) ? `ran ${number(ran)} s` : "has not ended"}.` : "has not started.") + task;
  };
  const focus = (item) => {
    if (item === shape.item) return;
    shape.item = item;
    describe();
    change({}, "lanes");
  };
  // Returns the item at a point of the canvas, or -1.
  const hit = (x, y) => {
    if (!drawn || x < drawn.left) return -1;
    const { all, slots, rows, tops, fits, from, scale, left, most, body } = drawn;
    const slot = Math.floor(y / LANE);
    const time = from + (x - left) / scale;
    const near = 2 / scale;
    let [best, distance] = [-1, Infinity];
    const stacked = [];
    for (const item of drawn.items) {
      if (slots[all.lane[item]] !== slot || all.start[item] > time + near || all.end[item] < time - near) continue;
      if (!fits) { stacked.push(item); continue; }
      const off = Math.max(all.start[item] - time, time - all.end[item], 0) + 3 * near * Math.abs(rows[item] - Math.min(tops[slot] - 1, Math.floor(((y - slot * LANE - 2) / body) * tops[slot])));
      if (off < distance) [best, distance] = [item, off];
    }
    if (fits || !stacked.length) return best;
    // Items are stacked by their starts; the height selects one.
    stacked.sort((a, b) => all.start[a] - all.start[b] || a - b);
    let level = Math.max(0, ((slot + 1) * LANE - 2 - y) / body) * most;
    for (const item of stacked) { level -= all.amount[item]; if (level < 0) return item; }
    return stacked[stacked.length - 1];
  };
  const open = (item) => {
    if (item < 0) return;
    shape.item = item;
    describe();
    change({ job: jobOf(items(), item) }, "story");
    page.showStory();
  };
  const neighbour = (way) => {
    const { all, items: inView, shown } = drawn;
    const lane = shown[shape.slot];
    if (lane === undefined) return;
    const before = (a, b) => all.start[a] < all.start[b] || (all.start[a] === all.start[b] && a < b);
    // Without a focus, the first job in view.
    const within = shape.item >= 0 ? select().list : inView;
    let best = -1;
    for (const item of within) {
      if (all.lane[item] !== lane) continue;
      if (shape.item >= 0 && !(way > 0 ? before(shape.item, item) : before(item, shape.item))) continue;
      if (best < 0 || (way > 0 || shape.item < 0 ? before(item, best) : before(best, item))) best = item;
    }
    if (best < 0) return;
    focus(best);
    const [from, to] = view();
    if (all.start[best] < from || all.start[best] > to) look(all.start[best] - (to - from) / 2, all.start[best] + (to - from) / 2);
  };
  const actions = {
    "+": () => move(0.5, 0), "=": () => move(0.5, 0), "-": () => move(2, 0), "−": () => move(2, 0), 0: () => look(0, last), Home: () => look(0, last),
    ArrowLeft: () => move(1, -0.2), ArrowRight: () => move(1, 0.2),
    ArrowUp: () => lane(-1), ArrowDown: () => lane(1),
    Enter: () => (shape.item >= 0 ? open(shape.item) : neighbour(1)), Escape: () => focus(-1),
  };
  const lane = (way) => {
    const { lanes } = select();
    shape.item = -1;
    const next = shape.slot + way;
    if (next >= 0 && next < Math.min(laneCount(), lanes.length - shape.first)) shape.slot = next;
    else if (shape.first + next >= 0 && shape.first + next < lanes.length) shape.first += way;
    const name = lanes[shape.first + shape.slot];
    info.textContent = name === undefined ? " " : `Lane ${kinds[shape.kind][2](name)}`;
    change({}, "lanes");
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const action = event.shiftKey && event.key === "ArrowLeft" ? () => neighbour(-1) : event.shiftKey && event.key === "ArrowRight" ? () => neighbour(1) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  canvas.addEventListener("focus", () => change({}, "lanes"));
  canvas.addEventListener("blur", () => change({}, "lanes"));
  const point = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("wheel", (event) => {
    // Without focus, the wheel scrolls the page.
    if (document.activeElement !== canvas || !drawn) return;
    event.preventDefault();
    const [from, to] = view();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) { look(from + event.deltaX / drawn.scale, to + event.deltaX / drawn.scale); return; }
    const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300)));
    const time = Math.min(Math.max(from, from + (point(event)[0] - drawn.left) / drawn.scale), to);
    look(time - (time - from) * factor, time + (to - time) * factor);
  }, { passive: false });
  let grip = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    grip = { x: event.clientX, view: view(), moved: false };
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drawn) return;
    if (!grip) { focus(hit(...point(event))); return; }
    if (Math.abs(event.clientX - grip.x) > 3) grip.moved = true;
    if (!grip.moved) return;
    const by = (grip.x - event.clientX) / drawn.scale;
    const length = grip.view[1] - grip.view[0];
    const start = Math.min(Math.max(0, grip.view[0] + by), last - length);
    if (length < last) change({ view: [start, start + length] }, "view");
  });
  canvas.addEventListener("pointerup", (event) => {
    const clicked = grip && !grip.moved;
    grip = null;
    if (!clicked) return;
    const [x, y] = point(event);
    const slot = Math.floor(y / LANE);
    if (slot < shownLanes().length) shape.slot = slot;
    open(hit(x, y));
  });
  canvas.addEventListener("pointercancel", () => { grip = null; });
  canvas.addEventListener("pointerleave", () => { if (!grip && document.activeElement !== canvas && shape.item >= 0 && jobOf(items(), shape.item) !== state.job) focus(-1); });
  return () => { Object.assign(shape, { first: 0, slot: 0, item: -1 }); };
};
