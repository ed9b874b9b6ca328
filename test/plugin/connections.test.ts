/** How the plugin uses HTTP: it trusts the host's root certificates only and uses no proxy, whatever the environment says. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { makeRoot, makeSigned } from "../support/certificates.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { type CallOptions, failureOf, openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";

const ROOTS = "/etc/ssl/certs/ca-certificates.crt";
const GATE = "http://127.0.0.1:8080/";
const SAFE_GATE = "https://127.0.0.1:8443/";

/** Nothing listens there. */
const PROXY = "http://127.0.0.1:9";
const PROXIES = {
  HTTP_PROXY: PROXY,
  http_proxy: PROXY,
  HTTPS_PROXY: PROXY,
  https_proxy: PROXY,
  ALL_PROXY: PROXY,
  all_proxy: PROXY,
};

const INTERRUPTED = 111;

describe("a readiness gate", () => {
  const test = testNeeding(hostProblem(), program("openssl"), existsSync(ROOTS) ? undefined : `needs ${ROOTS}`);
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() !== undefined) return;
    site = await openPluginSite("embedded");
    await serveGates(site);
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const gate = (url: string, environment: CallOptions["environment"] = {}): CallOptions => ({
    config: site.config({ readiness_gates: [url] }),
    environment,
    limitMilliseconds: 20_000,
  });
  const opens = async (options: CallOptions) => {
    const pod = await site.makePod();
    await site.add(pod, options);
    await site.quietly("DEL", pod);
    expect(await site.left()).toEqual([]);
  };

  test("fails over https if its certificate is not trusted", async () => {
    const options = { ...gate(SAFE_GATE), limitMilliseconds: 1_500 };
    const { stdout } = await site.call("ADD", await site.makePod(), options);
    expect(JSON.parse(stdout).code).toBe(INTERRUPTED);
    expect(await site.left()).toEqual([]);
  });

  test("stays closed although the environment names its root or switches verification off", async () => {
    const root = `${site.host.directory}/root.crt`;
    const attacks = [{ SSL_CERT_FILE: root }, { NODE_EXTRA_CA_CERTS: root }, { NODE_TLS_REJECT_UNAUTHORIZED: "0" }];
    for (const environment of attacks) {
      const options = { ...gate(SAFE_GATE, environment), limitMilliseconds: 1_500 };
      const { stdout } = await site.call("ADD", await site.makePod(), options);
      expect({ environment, code: JSON.parse(stdout).code }).toEqual({ environment, code: INTERRUPTED });
    }
    expect(await site.left()).toEqual([]);
  });

  test("opens over https with the host's root certificates, and is contacted without a proxy", async () => {
    const before = readFileSync(site.host.view(ROOTS), "utf8");
    const root = readFileSync(site.host.view(`${site.host.directory}/root.crt`), "utf8");
    writeFileSync(site.host.view(ROOTS), before + root);
    await opens(gate(SAFE_GATE));
    await opens(gate(SAFE_GATE, PROXIES));
    writeFileSync(site.host.view(ROOTS), before);
    await opens(gate(GATE, PROXIES));
  });
});

describe("a proxy of the runtime", () => {
  testNeeding(hostProblem(), hasEtcd ? undefined : "needs the program etcd")(
    "is not used for etcd, and is passed on to an IPAM plugin",
    async () => {
      await using site = await openPluginSite("etcd");
      const pod = await site.makePod();
      await site.add(pod, { environment: PROXIES });
      await site.quietly("DEL", pod, { environment: PROXIES });
      const stdin = JSON.stringify(site.config());
      expect(await site.host.must([builtProgram(), "-t"], { stdin, environment: PROXIES })).toBe("");

      site.host.writeFile(
        "/opt/told/tells",
        `#!/bin/sh\necho "{\\"code\\":123,\\"msg\\":\\"$HTTP_PROXY\\"}"; exit 1\n`,
      );
      await site.host.must(["chmod", "755", "/opt/told/tells"]);
      const config = site.config({ ipam: { type: "tells" } });
      const told = await site.call("ADD", pod, { config, environment: { ...PROXIES, CNI_PATH: "/opt/told" } });
      expect(failureOf(told)).toMatchObject({ code: 123, msg: PROXY });
      expect(await site.left()).toEqual([]);
    },
  );
});

async function serveGates(site: PluginSite): Promise<void> {
  const { host } = site;
  const folder = host.view(host.directory);
  makeSigned(folder, "gate", makeRoot(folder, "root"));
  const file = `${host.directory}/gates.ts`;
  host.writeFile(
    file,
    `const fetch = () => new Response();
    const tls = { cert: Bun.file("${host.directory}/gate.crt"), key: Bun.file("${host.directory}/gate.key") };
    Bun.serve({ hostname: "127.0.0.1", port: 8080, fetch });
    Bun.serve({ hostname: "127.0.0.1", port: 8443, tls, fetch });
    console.log("ready");`,
  );
  host.start([process.execPath, file], "gates.log");
  await pollUntil(() => readFileSync(host.view(`${host.directory}/gates.log`), "utf8").includes("ready"), "the gates");
}
