// The worker of the page: the first message has the module and its input, each further one the changes of a run.
let engine = null;
addEventListener("message", async ({ data }) => {
  try {
    if (data.module) await (engine = openEngine(data.module, data.input, (seconds, launched) => postMessage({ seconds, launched })));
    else postMessage({ tables: (await engine)(data.changes) });
  } catch (error) {
    postMessage({ error: error.message || String(error) });
  }
});
