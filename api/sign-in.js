// The sign-in of the home page. The token goes to the server once, and comes back as a cookie that no script can read.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const ask = (method, path, body) => fetch(path, {
    method, body: body && JSON.stringify(body), headers: body ? { "Content-Type": "application/json" } : {},
  });
  const say = (text) => { at("said").textContent = text; };

  async function show() {
    const me = await ask("GET", "/api/v1/me");
    at("out").hidden = !me.ok;
    at("in").hidden = me.ok;
    if (me.ok) {
      const { name, role, apps } = await me.json();
      say(`You are signed in as ${name}, ${role}${apps ? " of " + apps.join(", ") : ""}.`);
      return;
    }
    say("");
    const ways = await ask("GET", "/api/v1/login");
    const { oidc } = ways.ok ? await ways.json() : {};
    at("oidc").hidden = !oidc;
    if (oidc) at("oidc").href = oidc;
  }

  at("in").addEventListener("submit", async (e) => {
    e.preventDefault();
    const r = await ask("POST", "/api/v1/login", { token: at("token").value.trim() });
    at("token").value = "";
    if (!r.ok) {
      const problem = await r.json().catch(() => ({}));
      say(problem.detail || "The node does not answer.");
      return;
    }
    show();
  });
  at("out").addEventListener("click", async () => { await ask("POST", "/api/v1/logout"); show(); });
  show();
})();
