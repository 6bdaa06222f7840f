// Performs each action of the interactive part of a report some times, and returns the milliseconds from the input to the paint.
(async (times) => {
  const section = document.getElementById("explore");
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  for (let nth = 0; nth < 1000 && !section.dataset.drawn; nth++) await wait(20);
  // The message arrives after the frame in which the change is drawn.
  const painted = () => new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(0);
  }));
  // Views that are not on the screen are drawn later.
  const settled = async () => { for (let [last, same] = ["", 0]; same < 5; same = section.dataset.drawn === last ? same + 1 : 0) { last = section.dataset.drawn; await wait(20); } };
  const set = (node, value, type) => { node.value = value; node.dispatchEvent(new Event(type, { bubbles: true })); };
  const find = (selector) => section.querySelector(selector);
  const field = (text) => [...section.querySelectorAll("label")].find((label) => label.firstChild.textContent.startsWith(text)).querySelector("input, select");
  const timeline = find("canvas.timeline");
  const names = [...section.querySelectorAll(".tall tbody td:first-child")].map((cell) => cell.textContent);
  const key = (name) => timeline.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const mouse = (node, type, part) => {
    const box = node.getBoundingClientRect();
    const place = { clientX: box.left + part * box.width, clientY: box.top + box.height / 2, button: 0, buttons: 1, movementX: 9, bubbles: true, cancelable: true, view: window };
    node.dispatchEvent(type.startsWith("pointer") ? new PointerEvent(type, place) : new MouseEvent(type, place));
  };
  const sort = (column) => () => find(`.wide button.sort[data-key=${column}]`).click();
  const actions = {
    "filter by user": (nth) => set(field("Users with"), nth % 3 === 2 ? "" : names[nth % names.length], "input"),
    "filter by time": (nth) => set(field("Submitted from"), nth % 2 ? "" : String(0.01 * (nth + 1)), "input"),
    "search a job": (nth) => set(field("Jobs with"), nth % 3 === 2 ? "" : String(nth), "input"),
    "show or hide a policy": () => find("input[type=checkbox]").click(),
    "sort jobs by slowdown": sort("slowdown"),
    "sort jobs by wait": sort("wait"),
    "sort jobs by name": sort("job"),
    "sort jobs by user": sort("user"),
    "sort users by mean": () => find(".tall button.sort[data-key='1']").click(),
    "quantity": (nth) => set(field("Quantity").closest(".card") && [...section.querySelectorAll("select")].find((one) => one.options[0].value === "completion"), ["wait", "slowdown", "completion"][nth % 3], "change"),
    "brush in time": (nth) => {
      const over = find(".u-over");
      const from = 0.05 + 0.01 * (nth % 30);
      mouse(over, "mousedown", from);
      mouse(over, "mousemove", from + 0.2);
      mouse(over, "mouseup", from + 0.2);
    },
    "reset": () => [...section.querySelectorAll("button")].find((one) => one.textContent === "Reset").click(),
    "zoom the timeline": (nth) => key(nth % 8 < 4 ? "+" : "-"),
    "move the timeline": (nth) => key(nth % 2 ? "ArrowLeft" : "ArrowRight"),
    "lanes of the timeline": (nth) => set(field("Lanes"), nth % 2 ? "user" : "size", "change"),
    "policy of the timeline": (nth) => set(field("Policy"), String(nth % 2), "change"),
    "hover over the timeline": (nth) => mouse(timeline, "pointermove", 0.3 + 0.02 * (nth % 30)),
    "open a job": (nth) => find(`.wide tbody tr:nth-child(${1 + (nth % 20)}) button`).click(),
  };
  // Brings the control or the view of an action to the screen, as a reader sees it.
  const scroll = (name) => {
    const card = (title) => [...section.querySelectorAll(".card")].find((one) => one.getAttribute("aria-label") === title);
    const titles = [["timeline", "Timeline"], ["sort users", "Users of the selected jobs"], ["quantity", "Distribution over the selected jobs"], ["brush", "Over time"], ["job", "Selected jobs"]];
    const title = titles.find(([word]) => name.includes(word));
    (title ? card(title[1]) : find(".controls")).scrollIntoView({ block: title ? "center" : "start", behavior: "instant" });
  };
  const found = {};
  for (const [name, act] of Object.entries(actions)) {
    found[name] = [];
    // Each action starts with all jobs.
    if (name !== "reset") actions.reset();
    scroll(name);
    await settled();
    for (let nth = 0; nth < times; nth++) {
      await wait(5);
      const from = performance.now();
      act(nth);
      await painted();
      found[name].push(performance.now() - from);
      await settled();
    }
  }
  return found;
})
