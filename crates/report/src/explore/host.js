"use strict";
// The host of the engine in WebAssembly (page/src/lib.rs), for a worker of the page and for Node.js. `input` has the request, a zero byte
// and the rows of the workload.
const openEngine = async (module, input, progress) => {
  const { instance } = await WebAssembly.instantiate(module, { plimsoll: { progress } });
  const engine = instance.exports;
  const call = (entry, bytes) => {
    const start = engine.allocate(bytes.length);
    new Uint8Array(engine.memory.buffer, start, bytes.length).set(bytes);
    const done = engine[entry]();
    const text = new TextDecoder().decode(new Uint8Array(engine.memory.buffer, engine.output_start(), engine.output_length()));
    if (!done) throw new Error(text);
    return text;
  };
  call("prepare", input);
  return (changes) => {
    const [runs, jobs, fairness] = call("run", new TextEncoder().encode(JSON.stringify(changes))).split("\0");
    return { runs, jobs, fairness };
  };
};
