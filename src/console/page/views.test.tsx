import { afterEach, describe, expect, test } from "bun:test";
import { render } from "preact-render-to-string";
import type { Health } from "../api/health.ts";
import { Detail } from "./addresses/address-panel.tsx";
import { ShownPools } from "./addresses/pool-list.tsx";
import { health, healthFollowing } from "./health/follow-health.ts";
import { HealthView } from "./health/health-view.tsx";
import { Login } from "./login.tsx";
import { loginMode, loginNotice } from "./session-state.ts";

const textOf = (html: string) =>
  html
    .replace(/<svg.*?<\/svg>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/&quot;/g, '"')
    .replace(/\s+/g, " ");

afterEach(() => {
  health.value = undefined;
  loginNotice.value = undefined;
  loginMode.value = "cluster";
});

describe("the login", () => {
  test("says how to get a token", () => {
    expect(textOf(render(<Login />))).toContain("kubectl create token");
  });

  test("after an expiry says why, and that the view is kept", () => {
    loginNotice.value = { message: "The session has ended", isExpiry: true };

    expect(textOf(render(<Login />))).toMatch(/The session has ended .*you see the same view again/);
  });

  test("of one host asks for another token", () => {
    loginMode.value = "host";

    expect(textOf(render(<Login />))).toContain("One-time token");
    expect(textOf(render(<Login />))).not.toContain("kubectl");
  });

  test("does not show or complete the token", () => {
    expect(render(<Login />)).toMatch(/<input[^>]*type="password"[^>]*autocomplete="off"/);
  });
});

describe("the health", () => {
  const shown: Health = { at: 1, state: "ok", parts: [], nodes: [], problems: [], hidden: [] };

  test("has the command beside the problem, and names what is hidden", () => {
    health.value = {
      ...shown,
      state: "failed",
      problems: [{ state: "failed", message: "etcd is gone", command: "systemctl start etcd" }],
      hidden: ["nodes"],
    };
    const text = textOf(render(<HealthView />));

    expect(text).toContain("1 failure");
    expect(text).toMatch(/etcd is gone .*systemctl start etcd/);
    expect(text).toMatch(/may not list them: .*nodes/);
  });

  test("a state is a word, not only a colour", () => {
    health.value = { ...shown, parts: [{ name: "BGP", state: "warning", detail: "1 of 2 up", knownAt: 1 }] };

    expect(textOf(render(<HealthView />))).toMatch(/BGP .*warning .*1 of 2 up/);
  });

  test("says that it asks, before anything is known", () => {
    healthFollowing.value = { kind: "asking" };

    expect(textOf(render(<HealthView />))).toContain("Asking for the health");
  });
});

describe("addresses", () => {
  test("without pools say how to make one", () => {
    const text = textOf(render(<ShownPools pools={{ at: 1, pools: [], problems: [], hidden: [] }} />));

    expect(text).toContain("There is no pool yet");
  });

  test("that may not be listed are not none", () => {
    const text = textOf(render(<ShownPools pools={{ at: 1, pools: [], problems: [], hidden: ["pools"] }} />));

    expect(text).not.toContain("There is no pool yet");
    expect(text).toMatch(/may not list them: .*pools/);
  });

  test("an address says who has it, or why it is nobody's and what to do", () => {
    const leaked = { address: "10.0.0.7", use: "l", reason: "its pod is gone", command: "ipam release" } as const;

    expect(textOf(render(<Detail detail={leaked} />))).toMatch(/leaked .*its pod is gone .*ipam release/);
    expect(textOf(render(<Detail detail={{ address: "10.0.0.8", use: "u", owner: "pod shop/web" }} />))).toContain(
      "used: pod shop/web",
    );
  });
});
