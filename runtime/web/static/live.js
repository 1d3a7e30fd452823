// What the page asks of its server: events as they come, questions, orders, and a token if one is wanted.

export async function ask(path, options) {
  const answer = await fetch(path, { credentials: "same-origin", ...options }).catch(() => {
    throw new Error(options?.method ? "no answer came. The order may have been carried out all the same: look before you give it again" : "no answer from the server; trying again");
  });
  const text = await answer.text();
  let said;
  try { said = text ? JSON.parse(text) : {}; } catch { said = { errors: [text.slice(0, 300)] }; }
  if (!answer.ok) throw Object.assign(new Error(said.errors?.join("; ") || answer.statusText), { status: answer.status });
  return said;
}

export const order = (path, body, method = "POST") =>
  ask(path, { method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body) });

export async function login(token) {
  await ask("login", { method: "POST", headers: { Authorization: `Bearer ${token}` } });
}

// The outcome of a savepoint, a stop or the like, when there is one.
export async function outcome(path) {
  for (let pause = 200; ; pause = Math.min(pause * 1.5, 2000)) {
    const said = await ask(path);
    if (said.status.id === "COMPLETED") {
      const failed = said.operation?.["failure-cause"] || said.operation?.failureCause;
      if (failed) throw new Error(failed["stack-trace"]);
      return said.operation;
    }
    await new Promise((done) => setTimeout(done, pause));
  }
}

// Follows a job, or with an empty id the list, until it is closed; connects again by itself.
export function follow(job, hear) {
  let source = null, timer = 0, closed = false, pause = 500;
  const open = () => {
    source = new EventSource(`live${job ? `?job=${encodeURIComponent(job)}` : ""}`);
    for (const kind of ["jobs", "job", "away"]) {
      source.addEventListener(kind, (event) => { pause = 500; hear(kind, JSON.parse(event.data)); });
    }
    source.onerror = () => {
      source.close();
      if (closed) return;
      // Why not: a token is wanted, there is no such job, or nobody is there.
      ask(job ? `jobs/${encodeURIComponent(job)}/status` : "page").then(
        () => hear("away", { why: "the connection was lost; trying again", status: 0 }),
        (error) => hear("away", { why: error.status ? error.message : "no answer from the server; trying again", status: error.status || 0 }),
      );
      timer = setTimeout(open, pause);
      pause = Math.min(pause * 2, 5000);
    };
  };
  open();
  return () => { closed = true; clearTimeout(timer); source.close(); };
}
