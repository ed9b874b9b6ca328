import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { chooseContext } from "./kubeconfig.ts";

const PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const DATA = Buffer.from(PEM).toString("base64");

function kubeconfig({ cluster = {}, user = {}, context = { cluster: "c", user: "u" }, current = "x" } = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server: "https://api:6443", ...cluster } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context }],
    "current-context": current,
  });
}

function choose(text: string) {
  return chooseContext([{ file: "/etc/kube/config", text }]);
}

describe("chooseContext()", () => {
  test("reads YAML as kubectl writes it", () => {
    const text = `
apiVersion: v1
kind: Config
clusters:
- name: blue
  cluster: { server: "https://10.0.0.1:6443/", certificate-authority-data: ${DATA} }
users:
- name: plugin
  user: { token: abc }
contexts:
- name: here
  context: { cluster: blue, user: plugin, namespace: ignored }
current-context: here
`;
    expect(choose(text)).toEqual({
      cluster: {
        server: "https://10.0.0.1:6443",
        certificateAuthority: { kind: "data", pem: PEM, field: "certificate-authority-data", file: "/etc/kube/config" },
      },
      user: { token: "abc" },
      source: 'user "plugin" of "/etc/kube/config"',
    });
  });

  test("relative paths are relative to the file that names them", () => {
    const { cluster, user } = choose(
      kubeconfig({
        cluster: { "certificate-authority": "pki/ca.crt" },
        user: { "client-certificate": "../a.crt", "client-key": "/abs/a.key", tokenFile: "token" },
      }),
    );
    expect(cluster.certificateAuthority).toEqual({ kind: "file", path: "/etc/kube/pki/ca.crt" });
    expect(user.clientCertificate).toEqual({ kind: "file", path: "/etc/kube/../a.crt" });
    expect(user.clientKey).toEqual({ kind: "file", path: "/abs/a.key" });
    expect(user.tokenFile).toBe("/etc/kube/token");
  });

  test("data takes precedence over the file", () => {
    const { cluster } = choose(
      kubeconfig({ cluster: { "certificate-authority": "x", "certificate-authority-data": DATA } }),
    );
    expect(cluster.certificateAuthority).toMatchObject({ kind: "data", pem: PEM });
  });

  test("reads the settings of the connection", () => {
    const { cluster } = choose(
      kubeconfig({ cluster: { "tls-server-name": "kubernetes", "proxy-url": "http://p:3128", server: "api:6443" } }),
    );
    expect(cluster).toEqual({ server: "https://api:6443", tlsServerName: "kubernetes", proxyUrl: "http://p:3128" });
    expect(choose(kubeconfig({ cluster: { "insecure-skip-tls-verify": true } })).cluster.skipsTlsVerification).toBe(
      true,
    );
  });

  test("reads an exec plugin; a path with a slash is relative to the file", () => {
    const exec = {
      apiVersion: "client.authentication.k8s.io/v1",
      command: "./bin/login",
      args: ["--cluster", "c"],
      env: [{ name: "A", value: "b" }],
      installHint: "install it",
      provideClusterInfo: true,
    };
    expect(choose(kubeconfig({ user: { exec } })).user.exec).toEqual({
      apiVersion: "client.authentication.k8s.io/v1",
      command: "/etc/kube/./bin/login",
      args: ["--cluster", "c"],
      env: { A: "b" },
      installHint: "install it",
      provideClusterInfo: true,
      interactiveMode: "IfAvailable",
      file: "/etc/kube/config",
    });
  });

  test("a context without a user is one without credentials", () => {
    expect(choose(kubeconfig({ context: { cluster: "c", user: "" } })).user).toEqual({});
  });

  test("of several files the first counts for each name, and for the current context", () => {
    const second = kubeconfig({ cluster: { server: "https://second" }, user: { token: "t" }, current: "other" });
    const first = JSON.stringify({
      "current-context": "x",
      clusters: [{ name: "c", cluster: { server: "https://first" } }],
    });
    const { cluster, user, source } = chooseContext([
      { file: "/a", text: first },
      { file: "/b", text: second },
    ]);
    expect(cluster.server).toBe("https://first");
    expect(user.token).toBe("t");
    expect(source).toBe('user "u" of "/b"');
  });

  test("chooses another context than the current one by its name", () => {
    const file = "/etc/kube/config";
    const other = kubeconfig({ current: "other" });

    expect(() => chooseContext([{ file, text: other }])).toThrow('"other", which is not in "contexts"');
    expect(chooseContext([{ file, text: other }], "x").source).toBe(`user "u" of "${file}"`);
    expect(() => chooseContext([{ file, text: other }], "missing")).toThrow(
      'the chosen context is or names "missing", which is not in "contexts"',
    );
  });

  test.each<[string, string, string]>([
    ["text that is not YAML", "a: [", "not valid YAML"],
    ["text without an object", "just text", "does not contain an object"],
    ["no current context", kubeconfig({ current: "" }), "it has no current context"],
    ["an unknown current context", kubeconfig({ current: "zzz" }), '"zzz", which is not in "contexts"'],
    ["an unknown cluster", kubeconfig({ context: { cluster: "zzz", user: "u" } }), '"zzz", which is not in "clusters"'],
    ["an unknown user", kubeconfig({ context: { cluster: "c", user: "zzz" } }), '"zzz", which is not in "users"'],
    ["no server", kubeconfig({ cluster: { server: "" } }), 'has no "server"'],
    ["a server that is not a URL", kubeconfig({ cluster: { server: "ftp://x" } }), "not an http or https URL"],
    ["a certificate without a key", kubeconfig({ user: { "client-certificate": "/a" } }), 'without "client-key"'],
    ["data that is not PEM", kubeconfig({ cluster: { "certificate-authority-data": "AAAA" } }), "not a PEM block"],
    ["SOCKS", kubeconfig({ cluster: { "proxy-url": "socks5://x" } }), '"proxy-url"'],
    ["an auth provider", kubeconfig({ user: { "auth-provider": { name: "gcp" } } }), '"auth-provider"'],
    [
      "a CA that would not be used",
      kubeconfig({ cluster: { "insecure-skip-tls-verify": true, "certificate-authority": "/ca" } }),
      '"insecure-skip-tls-verify" and a certificate authority',
    ],
    ["exec without a command", kubeconfig({ user: { exec: { apiVersion: "v" } } }), 'has no "command"'],
  ])("refuses %s, and names the file", (_, text, state) => {
    const failure = thrownBy(() => choose(text));
    expect(failure).toMatchObject({ kind: "config-invalid" });
    expect(String(failure)).toContain('"/etc/kube/config"');
    expect(String(failure)).toContain(state);
  });

  test("no message contains a secret of the file", () => {
    const secret = "hidden-word-1";
    const user = { token: secret, password: secret, username: "me", "client-key-data": secret };
    const exec = { command: "c", args: [secret], env: [{ name: "TOKEN", value: secret }] };
    const texts = [
      kubeconfig({ user }),
      kubeconfig({ user: { ...user, "client-key-data": undefined, token: [secret] } }),
      kubeconfig({ user: { exec: { ...exec, args: { a: secret } } } }),
      kubeconfig({ user: { exec: { ...exec, env: [{ name: secret }] } } }),
      kubeconfig({ cluster: { server: `https://me:${secret}@api` } }),
      kubeconfig({ cluster: { "proxy-url": `socks5://me:${secret}@proxy` } }),
      kubeconfig({ cluster: { "certificate-authority-data": secret } }),
      `${kubeconfig({ user })}\n"token": "${secret}`,
      `token: ${secret}: x`,
    ];
    for (const text of texts) {
      const failure = thrownBy(() => choose(text));
      expect(`${failure.message} ${failure.details}`).not.toContain(secret);
    }
  });

  test("says which contexts there are", () => {
    expect(thrownBy(() => choose(kubeconfig({ current: "" })))).toMatchObject({
      details: 'set "current-context" to one of "x"',
    });
  });
});
