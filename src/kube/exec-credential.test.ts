import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { ExecCredentials } from "./exec-credential.ts";
import type { ExecPlugin } from "./kubeconfig-entries.ts";

const V1 = "client.authentication.k8s.io/v1";
const directory = temporaryDirectory("exec");
afterAll(() => directory.remove());

let programs = 0;

/** A plugin that runs the shell script. */
async function pluginOf(script: string, more: Partial<ExecPlugin> = {}): Promise<ExecPlugin> {
  programs += 1;
  const command = join(directory.path, `plugin-${programs}`);
  await Bun.write(command, `#!/bin/sh\n${script}\n`);
  chmodSync(command, 0o755);
  return {
    apiVersion: V1,
    command,
    args: [],
    env: {},
    installHint: "install it",
    provideClusterInfo: false,
    interactiveMode: "IfAvailable",
    file: "/etc/kubeconfig",
    ...more,
  };
}

const NOW = new Date("2026-01-01T00:00:00Z");

function credentialsOf(plugin: ExecPlugin, { environment = {}, now = () => NOW } = {}): ExecCredentials {
  const path = { PATH: "/usr/bin:/bin" };
  return new ExecCredentials(plugin, {
    environment: { ...path, ...environment },
    now,
    cluster: { server: "https://api:6443", tlsServerName: "kubernetes" },
  });
}

function printing(status: object, apiVersion = V1): string {
  return `cat <<'END'\n${JSON.stringify({ apiVersion, kind: "ExecCredential", status })}\nEND`;
}

describe("ExecCredentials.current()", () => {
  test.each([V1, "client.authentication.k8s.io/v1beta1"])(
    "returns the token that the plugin prints (%s)",
    async (apiVersion) => {
      const plugin = await pluginOf(printing({ token: "abc" }, apiVersion), { apiVersion });
      expect(await credentialsOf(plugin).current()).toEqual({ token: "abc" });
    },
  );

  test("returns a client certificate", async () => {
    const plugin = await pluginOf(printing({ clientCertificateData: "CERT", clientKeyData: "KEY" }));
    expect(await credentialsOf(plugin).current()).toEqual({ cert: "CERT", key: "KEY" });
  });

  test("runs the plugin once until its credentials expire", async () => {
    const file = join(directory.path, "runs");
    const expirationTimestamp = "2026-01-01T00:01:00Z";
    const plugin = await pluginOf(`echo run >> ${file}\n${printing({ token: "abc", expirationTimestamp })}`);
    let now = NOW;
    const credentials = credentialsOf(plugin, { now: () => now });
    const runs = async () => (await Bun.file(file).text()).trim().split("\n").length;
    await Promise.all([credentials.current(), credentials.current()]);
    await credentials.current();
    expect(await runs()).toBe(1);

    now = new Date("2026-01-01T00:00:55Z");
    await credentials.current();
    expect(await runs()).toBe(2);

    now = NOW;
    await credentials.current();
    credentials.forget();
    await credentials.current();
    expect(await runs()).toBe(3);
  });

  test("gives it arguments, its own variables and the environment, but no BUN_* variables", async () => {
    const script = `printf '{"apiVersion":"${V1}","kind":"ExecCredential","status":{"token":"%s"}}' "$1/$A/$B/$BUN_OPTIONS/"`;
    const plugin = await pluginOf(script, { args: ["argument"], env: { A: "own" } });
    const environment = { A: "inherited", B: "kept", BUN_OPTIONS: "--preload=/x" };
    expect(await credentialsOf(plugin, { environment }).current()).toEqual({ token: "argument/own/kept//" });
  });

  test("tells it about the cluster if it asks for that", async () => {
    const file = join(directory.path, "info");
    const plugin = await pluginOf(`printf %s "$KUBERNETES_EXEC_INFO" > ${file}\n${printing({ token: "t" })}`, {
      provideClusterInfo: true,
    });
    await credentialsOf(plugin).current();
    expect(await Bun.file(file).json()).toEqual({
      apiVersion: V1,
      kind: "ExecCredential",
      spec: { interactive: false, cluster: { server: "https://api:6443", "tls-server-name": "kubernetes" } },
    });
  });

  test.each<[string, string, Partial<ExecPlugin>, string]>([
    ["another version", printing({ token: "t" }, "client.authentication.k8s.io/v1beta1"), {}, "not"],
    ["text that is not JSON", "echo hidden-word", {}, "its output is not JSON"],
    ["no credentials", printing({}), {}, "neither a token nor a client certificate"],
    ["a certificate without a key", printing({ clientCertificateData: "C" }), {}, "only one of"],
    ["an expiry that is not a time", printing({ token: "t", expirationTimestamp: "soon" }), {}, "not a time"],
    ["a failure", "echo 'token=hidden-word' >&2; exit 3", {}, "it ended with exit code 3"],
    ["one that needs a terminal", printing({ token: "t" }), { interactiveMode: "Always" }, "there is no terminal"],
  ])("refuses %s, and names plugin and kubeconfig", async (_, script, more, state) => {
    const plugin = await pluginOf(script, more);
    const failure = await rejectionOf(() => credentialsOf(plugin).current());
    expect(failure).toMatchObject({ kind: "api-unavailable" });
    expect(failure.message).toContain(`exec plugin "${plugin.command}" of kubeconfig "/etc/kubeconfig"`);
    expect(failure.message).toContain(state);
    expect(Bun.inspect(failure)).not.toContain("hidden-word");
  });

  test("a program that does not exist: the details say how to install it", async () => {
    const plugin = await pluginOf("", { command: "/nonexistent/login" });
    const failure = await rejectionOf(() => credentialsOf(plugin).current());
    expect(failure.message).toContain("there is no such program");
    expect(failure.details).toBe("install it");
  });

  test("after a failure it runs again", async () => {
    const mark = join(directory.path, "mark");
    const plugin = await pluginOf(
      `if [ -e ${mark} ]; then ${printing({ token: "t" })}\nelse touch ${mark}; exit 1; fi`,
    );
    const credentials = credentialsOf(plugin);
    await rejectionOf(() => credentials.current());
    expect(await credentials.current()).toEqual({ token: "t" });
  });

  test("an unknown version of the protocol is refused", async () => {
    const plugin = await pluginOf("", { apiVersion: "client.authentication.k8s.io/v1alpha1" });
    expect(() => credentialsOf(plugin)).toThrow('"apiVersion"');
  });
});
