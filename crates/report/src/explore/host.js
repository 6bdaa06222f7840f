"use strict";
// The host of the engine in WebAssembly (page/src/lib.rs), for a worker of the page and for Node.js.
const openEngine = async (module, request, trace, progress) => {
  const { instance } = await WebAssembly.instantiate(module, { plimsoll: { progress } });
  const engine = instance.exports;
  const call = (entry, input) => {
    const start = engine.allocate(input.length);
    new Uint8Array(engine.memory.buffer, start, input.length).set(input);
    const done = engine[entry]();
    const output = new Uint8Array(engine.memory.buffer, engine.output_start(), engine.output_length());
    const text = new TextDecoder().decode(output);
    if (!done) throw new Error(text);
    return text;
  };
  const head = new TextEncoder().encode(`${request}\0`);
  const input = new Uint8Array(head.length + trace.length);
  input.set(head);
  input.set(trace, head.length);
  call("prepare", input);
  return (changes) => {
    const [runs, jobs, fairness] = call("run", new TextEncoder().encode(JSON.stringify(changes))).split("\0");
    return { runs, jobs, fairness };
  };
};
