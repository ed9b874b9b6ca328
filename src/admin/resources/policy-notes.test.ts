/** What commands say about connections that they close or open. */
import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, contextIn, runInside } from "../../../test/support/admin-context.ts";
import { seed } from "../../../test/support/ipam.ts";
import { storeAround } from "../../../test/support/wrapped-store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { resourceKey } from "../../model/keys.ts";
import { isUneditedNetworkProfile, networkProfileSpec } from "../../model/network-profile.ts";
import { EXIT_OK } from "../main/command.ts";
import { withPolicyNotes } from "./policy-notes.ts";

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await put("nodes", "Node", "newhost", {});
  await put("profiles", "Profile", "pods", networkProfileSpec("pods"));
  for (const name of ["web", "db", "cache", "queue", "mail"]) await container(name, { role: name });
});

function put(plural: string, kind: string, name: string, spec: object, more: object = {}): Promise<void> {
  const metadata = { name, ...more };
  const value = JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec });
  return seed(store, { kind: "put", key: resourceKey(plural, { name, ...more }), value });
}

function container(name: string, labels: Readonly<Record<string, string>>, address = "10.0.0.1"): Promise<void> {
  const metadata = { namespace: "default", labels: { ...labels, [`${identity.labelPrefix}namespace`]: "default" } };
  return put("workloadendpoints", "WorkloadEndpoint", endpointOf(name), specOf(name, address), metadata);
}

const endpointOf = (name: string) => `newhost-cni-${name}-eth0`;

const specOf = (name: string, address = "10.0.0.1") => ({
  ...{ orchestrator: "cni", node: "newhost", workload: name, containerID: name, endpoint: "eth0" },
  ...{ ipNetworks: [`${address}/32`], profiles: ["pods"], interfaceName: `vend${name}` },
});

function ctl(words: string, stdin = ""): Promise<AdminRun> {
  return runInside(words.split(" "), { store, stdin });
}

const resource = (kind: string, name: string, spec: object, more: object = {}) =>
  JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name, ...more }, spec });

const policy = (name: string, spec: object) => resource("NetworkPolicy", name, spec, { namespace: "default" });

/** The notes of a command that must succeed. */
async function notesOf(words: string, stdin = ""): Promise<readonly string[]> {
  const { code, stderr } = await ctl(words, stdin);
  expect(code).toBe(EXIT_OK);
  return stderr.split("\n").filter((line) => line !== "");
}

const apply = (...documents: readonly string[]) => notesOf("apply -f -", documents.join("\n---\n"));

describe("a command that closes or opens workloads", () => {
  test("says whom: a count and three names", async () => {
    expect(await apply(policy("deny", { selector: "all()", types: ["Ingress"] }))).toEqual([
      "note: closes ingress of 5 containers: cache, db, mail and 2 more",
    ]);
    expect(await notesOf("delete networkpolicy deny")).toEqual([
      "note: opens ingress of 5 containers: cache, db, mail and 2 more",
    ]);
  });

  test("says it for both directions, for each separately if they differ, and not again", async () => {
    const one = policy("one", { selector: "role == 'web'", types: ["Ingress", "Egress"] });
    const two = policy("two", { selector: "role == 'db'", types: ["Egress"] });

    expect(await apply(one, two)).toEqual([
      "note: closes egress of 1 container: db",
      "note: closes ingress and egress of 1 container: web",
    ]);
    expect(await apply(one, two)).toEqual([]);
  });

  test("a dry run says it too, and writes nothing", async () => {
    const deny = policy("deny", { selector: "role == 'web'", types: ["Ingress"] });

    expect(await notesOf("apply -f - --dry-run", deny)).toEqual(["note: closes ingress of 1 container: web (dry run)"]);
    expect((await ctl("get networkpolicies -o name")).stdout).toBe("");
  });

  test("leaves the output for scripts alone", async () => {
    const { stdout } = await ctl("apply -f - -o json", policy("deny", { selector: "all()" }));

    expect(JSON.parse(stdout).results).toHaveLength(1);
    expect(stdout).not.toContain("closes");
  });

  test("what a policy allows whatever the packet is not closed", async () => {
    expect(await apply(policy("allow", { selector: "role == 'web'", ingress: [{ action: "Allow" }] }))).toEqual([]);
  });

  test("nor is what its rules allow one after another", async () => {
    const some = { action: "Allow", protocol: "TCP", destination: { ports: [80] } };
    const rules = [some, { action: "Allow" }, { action: "Deny" }];

    expect(await apply(policy("allow", { selector: "role == 'web'", ingress: rules }))).toEqual([]);
    expect(
      await apply(policy("deny", { selector: "role == 'db'", ingress: [{ ...some, action: "Deny" }, ...rules] })),
    ).toEqual(["note: closes ingress of 1 container: db"]);
  });

  test("one that is restricted in another way is changed, not closed", async () => {
    await apply(policy("deny", { selector: "role == 'web'", types: ["Ingress"] }));
    const more = policy("more", { selector: "role == 'web'", ingress: [{ action: "Allow", protocol: "TCP" }] });

    expect(await apply(more)).toEqual(["note: changes ingress of 1 container: web"]);
  });

  test("a label, a profile and a tier can close and open", async () => {
    await apply(policy("deny", { selector: "closed == 'yes'", types: ["Ingress"] }));
    const web = `workloadendpoint ${endpointOf("web")}`;
    const all = "5 containers: cache, db, mail and 2 more";

    expect(await notesOf(`label ${web} closed=yes`)).toEqual(["note: closes ingress of 1 container: web"]);
    expect(await notesOf(`label ${web} closed-`)).toEqual(["note: opens ingress of 1 container: web"]);
    const lasting = "label container web --node newhost";
    expect(await notesOf(`${lasting} closed=yes`)).toEqual(["note: closes ingress of 1 container: web"]);
    expect(await notesOf(`${lasting} closed-`)).toContain("note: opens ingress of 1 container: web");
    expect(await notesOf("annotate profile pods edited=yes")).toEqual([`note: closes ingress of ${all}`]);
    expect(await notesOf("annotate profile pods edited-")).toEqual([`note: opens ingress of ${all}`]);
    expect(await notesOf("label profile pods edited=yes")).toEqual([`note: closes ingress of ${all}`]);
    expect(await notesOf(`patch profile pods -p {"metadata":{"labels":{"edited":null}}}`)).toEqual([
      `note: opens ingress of ${all}`,
    ]);
    await apply(
      resource("Tier", "first", { order: 1, defaultAction: "Pass" }),
      resource("GlobalNetworkPolicy", "first.none", { tier: "first", types: ["Egress"] }),
    );
    expect(await apply(resource("Tier", "first", { order: 1, defaultAction: "Deny" }))).toEqual([
      `note: closes egress of ${all}`,
    ]);
  });

  test("labels of a container and network sets change whom the rules of others select", async () => {
    await container("database", { role: "database" }, "10.0.0.9");
    const rule = (selector: string) => ({ action: "Allow", source: { selector } });
    const ingress = [rule("role == 'shop'"), rule("set == 'office'")];
    await apply(policy("databases", { selector: "role == 'database'", ingress }));
    const set = (nets: readonly string[]) =>
      resource("NetworkSet", "office", { nets }, { namespace: "default", labels: { set: "office" } });
    const changed = "note: changes ingress of 1 container: database";

    expect(await notesOf("label container web --node newhost --overwrite role=shop")).toEqual([changed]);
    expect(await notesOf("label container web --node newhost role-")).toContain(changed);
    expect(await notesOf("label container web --node newhost other=x")).toEqual([]);
    expect(await apply(set(["192.0.2.0/24"]))).toEqual([changed]);
    expect(await notesOf("apply --dry-run -f -", set(["198.51.100.0/24"]))).toEqual([`${changed} (dry run)`]);
    expect(await notesOf("delete networkset office")).toEqual([changed]);
    const all = resource("GlobalNetworkSet", "office", { nets: ["192.0.2.0/24"] }, { labels: { set: "office" } });
    expect(await apply(all)).toEqual([]);
  });

  test("the first policy makes an edited profile count", async () => {
    await put("profiles", "Profile", "pods", networkProfileSpec("pods"), { labels: { edited: "yes" } });

    expect(await apply(policy("typo", { selector: "rol == 'web'", types: ["Ingress"] }))).toEqual([
      'note: networkpolicy/default/typo selects nothing now: nothing has the label "rol"; did you mean "role"?',
      "note: closes ingress of 5 containers: cache, db, mail and 2 more",
    ]);
  });
});

describe("a profile of a network that somebody writes with the rules that ADD writes", () => {
  const closed = resource("Profile", "pods", networkProfileSpec("pods"));
  const isOpen = async () => isUneditedNetworkProfile(JSON.parse((await ctl("get profile pods -o json")).stdout));
  const all = "5 containers: cache, db, mail and 2 more";
  beforeEach(() => put("networkpolicies", "NetworkPolicy", "x", { selector: "!all()" }, { namespace: "default" }));

  test.each(["apply -f -", "replace -f -"])("counts as it is written after %s, and again", async (words) => {
    await put("profiles", "Profile", "pods", { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] });

    expect(await notesOf(words, closed)).toEqual([`note: closes ingress of ${all}`]);
    expect(await isOpen()).toBe(false);
    expect((await ctl(words, closed)).stdout).toContain("unchanged");
  });

  test.each(["apply -f -", "create -f -"])("counts as it is written if %s is before the first ADD", async (words) => {
    await notesOf("delete profile pods --force");

    await notesOf(words, closed);

    expect(await isOpen()).toBe(false);
  });

  test("counts as it is written if a patch writes the rules, or replace removes a label", async () => {
    const { ingress } = networkProfileSpec("pods");
    await put("profiles", "Profile", "pods", { ...networkProfileSpec("pods"), ingress: [{ action: "Allow" }] });
    await notesOf(`patch profile pods -p ${JSON.stringify({ spec: { ingress } }).replaceAll(" ", "\\u0020")}`);
    expect(await isOpen()).toBe(false);

    await put("profiles", "Profile", "pods", networkProfileSpec("pods"), { labels: { closed: "yes" } });
    await notesOf("replace -f -", closed);
    expect(await isOpen()).toBe(false);
  });

  test("the record of ADD is left alone: the same rules again, a label that is removed, and a copy of the record", async () => {
    expect((await ctl("apply -f -", closed)).stdout).toContain("unchanged");
    await notesOf("label profile pods closed=yes");
    await notesOf("label profile pods closed-");
    expect(await isOpen()).toBe(true);

    await put("profiles", "Profile", "pods", networkProfileSpec("pods"), { uid: "1d2" });
    const copy = (await ctl("get profile pods -o json")).stdout;
    await notesOf("delete profile pods --force");
    await notesOf("create -f -", JSON.stringify({ ...JSON.parse(copy), metadata: { name: "pods", uid: "1d2" } }));
    expect(await isOpen()).toBe(true);
  });
});

test("a host whose network config has a policy type enforces profiles without any policy", async () => {
  const plugin = { type: identity.product, policy: { type: "k8s" }, ipam: { type: identity.ipamType } };
  const list = { name: "pods", cniVersion: "1.0.0", plugins: [plugin] };
  const files = { "/etc/cni/net.d/10.conflist": JSON.stringify(list) };
  const label = ["label", "profile", "pods", "closed=yes"];
  const plain = await runInside([...label, "--dry-run"], { store });

  const { stderr } = await runInside(label, { store, files });

  expect(plain.stderr).toBe("");
  expect(stderr).toEndWith("note: closes ingress of 5 containers: cache, db, mail and 2 more\n");
});

test.each(["preDNAT", "doNotTrack"])("a policy with %s is said for the hosts that it selects", async (option) => {
  const metadata = { labels: { host: "yes" } };
  await put("hostendpoints", "HostEndpoint", "h", { node: "newhost", interfaceName: "*" }, metadata);
  const ports = [{ name: "http", protocol: "TCP", port: 80, hostPort: 8080 }];
  await put(
    "workloadendpoints",
    "WorkloadEndpoint",
    endpointOf("web"),
    { ...specOf("web"), ports },
    {
      namespace: "default",
      labels: { [`${identity.labelPrefix}namespace`]: "default" },
    },
  );
  const rule = { action: "Deny", protocol: "TCP", destination: { ports: [8080] } };
  const spec = { selector: "host == 'yes'", [option]: true, applyOnForward: true, types: ["Ingress"], ingress: [rule] };
  const expected = [
    "note: changes what passes host newhost before routing (hostendpoint/h): 1 container there publishes ports",
  ];

  expect(await apply(resource("GlobalNetworkPolicy", "early", spec))).toEqual(expected);
  expect(await notesOf("delete globalnetworkpolicy early")).toEqual(expected);
});

test("a rule with a port of the host that a container publishes as another is said", async () => {
  await container("http", { role: "http" }, "10.0.0.7");
  const claim = {
    ...{ family: 4 as const, protocol: 6, hostPort: 8080, podPort: 80 },
    ...{ hostAddress: { family: 4 as const, value: 0n }, podAddress: { family: 4 as const, value: 0x0a000007n } },
  };
  const owners = [{ owner: { id: new Uint8Array(16), name: "pods/http/eth0" }, ports: [claim] }];
  const run = async (port: number) => {
    const rule = { action: "Allow", protocol: "TCP", destination: { ports: [port] } };
    const { stderr } = await runInside(["apply", "-f", "-"], {
      ...{ store, publishedPorts: async () => ({ owners, unreadable: [] }) },
      stdin: policy("http", { selector: "role == 'http'", ingress: [rule] }),
    });
    return stderr;
  };

  expect(await run(8080)).toBe(
    "note: http publishes 8080 as 80: rules see port 80\nnote: closes ingress of 1 container: http\n",
  );
  expect(await run(80)).toBe("note: changes ingress of 1 container: http\n");
});

describe("a policy that selects nothing", () => {
  test("is said, one by one or as a number", async () => {
    const idle = (name: string) => policy(name, { selector: "role == 'web' && role == 'db'" });

    expect(await apply(idle("a"))).toEqual(["note: networkpolicy/default/a selects nothing now"]);
    expect(await apply(...["b", "c", "d", "e"].map(idle))).toEqual([
      "note: 4 policies select nothing now: networkpolicy/default/b, networkpolicy/default/c, networkpolicy/default/d and 1 more",
    ]);
  });

  const values = 'values of "role" are cache, db, mail, queue, web';
  test.each([
    ["role == 'wbe'", `${values}; did you mean "web"?`],
    ["role == 'Web'", `${values}; did you mean "web"?`],
    ["role in {'wbe', 'nobody'}", `${values}; did you mean "web"?`],
    ["role starts with 'zzz'", values],
    ["has(role) && role == 'nobody'", values],
    ["rol == 'web'", 'nothing has the label "rol"; did you mean "role"?'],
    ["!has(role)", undefined],
    ["role != 'nobody' && !has(role)", undefined],
  ])("says which word of %p may be misspelt", async (selector, reason) => {
    expect(await apply(policy("a", { selector }))).toEqual([
      `note: networkpolicy/default/a selects nothing now${reason === undefined ? "" : `: ${reason}`}`,
    ]);
  });

  test("says that its namespace has no endpoint, and where containers are", async () => {
    const inside = (namespace: string) => resource("NetworkPolicy", "a", { selector: "all()" }, { namespace });

    expect(await apply(inside("prod"))).toEqual([
      'note: networkpolicy/prod/a selects nothing now: namespace "prod" has no endpoint; those of containers are in "default"',
    ]);
    for (const name of ["web", "db", "cache", "queue", "mail"])
      await notesOf(`delete workloadendpoint ${endpointOf(name)} --force`);
    await put(
      "workloadendpoints",
      "WorkloadEndpoint",
      "n-k8s-p-eth0",
      { pod: "p", orchestrator: "k8s", node: "n" },
      {
        ...{ namespace: "shop", labels: { [`${identity.labelPrefix}namespace`]: "shop" } },
      },
    );
    expect(await apply(inside("shpo"))).toEqual([
      'note: networkpolicy/shpo/a selects nothing now: namespace "shpo" has no endpoint; did you mean "shop"?',
    ]);
  });
});

describe("a rule whose peer selects nothing", () => {
  const from = (selector: string, more: object = {}) => ({ action: "Allow", source: { selector, ...more } });
  const peer = (...ingress: readonly object[]) => apply(policy("p", { selector: "role == 'db'", ingress }));
  const closes = "note: closes ingress of 1 container: db";

  test.each([
    ["role == 'wbe'", 'values of "role" are cache, db, mail, queue, web; did you mean "web"?'],
    ["rol == 'web'", 'nothing has the label "rol"; did you mean "role"?'],
  ])("is said, with the word of %p that may be misspelt", async (selector, reason) => {
    expect(await peer(from("role == 'web'"), from(selector))).toEqual([
      `note: source selector "${selector}" of networkpolicy/default/p selects nothing now: ${reason}`,
      closes,
    ]);
  });

  test("is said of egress too, and many are counted", async () => {
    const egress = [{ action: "Deny", destination: { selector: "role == 'wbe'" } }, { action: "Allow" }];
    expect((await apply(policy("p", { selector: "role == 'db'", egress })))[0]).toStartWith(
      "note: destination selector \"role == 'wbe'\" of networkpolicy/default/p selects nothing now: values of",
    );
    expect(await peer(...["a", "b", "c", "d"].map((value) => from(`role == '${value}'`)))).toContain(
      "note: 4 selectors of rules select nothing now, of networkpolicy/default/p",
    );
  });

  test("is not said of network sets, of other namespaces, and of one that is applied together", async () => {
    await put(
      "globalnetworksets",
      "GlobalNetworkSet",
      "office",
      { nets: ["192.0.2.0/24"] },
      { labels: { at: "office" } },
    );
    const set = resource("GlobalNetworkSet", "home", { nets: ["198.51.100.0/24"] }, { labels: { at: "home" } });

    expect(await peer(from("at == 'office'", { namespaceSelector: "global()" }))).toEqual([closes]);
    const both = policy("p", {
      ...{ selector: "role == 'db'" },
      ingress: [from("at == 'home'", { namespaceSelector: "global()" })],
    });
    expect(await apply(both, set)).toEqual(["note: changes ingress of 1 container: db"]);
  });
});

describe("a policy with preDNAT or doNotTrack", () => {
  const early = (selector: string) =>
    resource("GlobalNetworkPolicy", "early", { selector, preDNAT: true, applyOnForward: true, types: ["Ingress"] });
  const idle =
    "note: globalnetworkpolicy/early selects nothing now: with preDNAT or doNotTrack it is about host endpoints only";

  test("selects nothing without a host endpoint, whatever containers there are", async () => {
    expect(await apply(early("all()"))).toEqual([idle]);
    expect(await apply(early("role == 'web'"))).toEqual([`${idle}, and none has the label "role"`]);
    expect((await ctl("describe globalnetworkpolicy early")).stdout).toContain("Selects:      none: no host endpoint");
  });

  test("selects a host endpoint", async () => {
    await put("hostendpoints", "HostEndpoint", "h", { node: "newhost", interfaceName: "*" });

    expect(await apply(early("all()"))).toEqual([
      "note: changes what passes host newhost before routing (hostendpoint/h)",
    ]);
  });
});

describe("a host endpoint", () => {
  const host = (node: string, more: object = {}) =>
    resource("HostEndpoint", "all", { node, interfaceName: "*", ...more });

  test("of an unknown node is said, with the nodes that there are", async () => {
    expect((await apply(host("newhst")))[0]).toBe(
      'note: node "newhst" of hostendpoint/all is not known: nodes are newhost; did you mean "newhost"?',
    );
  });

  test("of a node that the same command creates has a known node", async () => {
    const node = resource("Node", "second", {});

    expect(await apply(node, host("second", { profiles: [`${identity.product}-default-allow`] }))).toEqual([]);
    expect((await apply(host("third")))[0]).toBe(
      'note: node "third" of hostendpoint/all is not known: nodes are newhost, second',
    );
  });

  test("whose rules close a part is not said to be closed", async () => {
    const ssh = (action: string, more: object = {}) => ({
      ...{ action, protocol: "TCP", destination: { ports: [22] } },
      ...more,
    });
    const closing = (...last: readonly object[]) =>
      resource("GlobalNetworkPolicy", "ssh", {
        selector: "role == 'host'",
        types: ["Ingress"],
        ingress: [ssh("Allow", { source: { nets: ["192.0.2.10/32"] } }), ssh("Deny"), ...last],
      });
    const endpoint = resource(
      "HostEndpoint",
      "all",
      { node: "newhost", interfaceName: "*", profiles: [`${identity.product}-default-allow`] },
      { labels: { role: "host" } },
    );

    expect(await apply(closing({ action: "Allow" }), endpoint)).toEqual([
      "note: restricts ingress of host newhost (hostendpoint/all): rules deny a part, everything else stays open, and so do failsafe ports (ingress: TCP 22, TCP 179, TCP 2379 and 6 more)",
    ]);
    await notesOf("delete globalnetworkpolicy ssh");
    expect(await apply(closing())).toEqual([
      expect.stringContaining("note: closes ingress of host newhost (hostendpoint/all): nothing is allowed but"),
    ]);
    await notesOf("delete globalnetworkpolicy ssh");
    expect(await apply(closing({ action: "Pass" }))).toEqual([
      expect.stringContaining("note: restricts ingress of host newhost"),
    ]);
  });

  test("that closes its host is said, with what stays open", async () => {
    expect(await apply(host("newhost"))).toEqual([
      "note: closes ingress and egress of host newhost (hostendpoint/all): nothing is allowed but failsafe ports (ingress: TCP 22, TCP 179, TCP 2379 and 6 more; egress: TCP 179, TCP 2379, TCP 2380 and 6 more) and what policies allow",
    ]);
    expect(await notesOf("delete hostendpoint all")).toEqual([
      "note: opens ingress and egress of host newhost (hostendpoint/all)",
    ]);
  });

  test("of an unknown node closes no host", async () => {
    expect(await apply(host("newhst"))).toEqual([expect.stringContaining('node "newhst" of hostendpoint/all is not')]);
    expect(await notesOf("delete hostendpoint all")).toEqual([]);
  });

  test("with a profile that does not exist says which, and what it may have meant", async () => {
    expect(await apply(host("newhost", { profiles: [`${identity.product}-defaut-allow`] }))).toEqual([
      `note: profile "${identity.product}-defaut-allow" of hostendpoint/all is not known; did you mean "${identity.product}-default-allow"?`,
      expect.stringContaining("note: closes ingress and egress of host newhost"),
    ]);
    expect(await apply(host("newhost", { profiles: ["zzz"] }))).toEqual([
      'note: profile "zzz" of hostendpoint/all is not known',
    ]);
    const own = resource("Profile", "zzz", { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] });
    expect(await apply(own, host("newhost", { profiles: ["zzz"] }))).toEqual([
      "note: opens ingress and egress of host newhost (hostendpoint/all)",
    ]);
  });

  test("of an interface that this host does not have says which there are, and closes nothing", async () => {
    const plugin = { type: identity.product, ipam: { type: identity.ipamType } };
    const list = { name: "pods", cniVersion: "1.0.0", plugins: [plugin] };
    const run = async (node: string, interfaceName: string, hostName = "newhost") => {
      const { stderr } = await runInside(["apply", "-f", "-"], {
        ...{ store, hostName, linkNames: ["lo", "uplink", "eth1", `${identity.interfacePrefix}0`, "tunl0"] },
        agentFacts: { agent: "running", hasPolicyTable: true },
        files: { "/etc/cni/net.d/10.conflist": JSON.stringify(list) },
        env: { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path },
        stdin: host(node, { interfaceName }),
      });
      return stderr.trimEnd();
    };

    expect(await run("newhost", "uplnk")).toBe(
      'note: node newhost has no interface "uplnk" (hostendpoint/all): links are uplink, eth1; did you mean "uplink"?',
    );
    expect(await run("newhost", "uplink")).toStartWith("note: closes ingress and egress of host newhost");
    await notesOf("delete hostendpoint all");
    expect(await run("newhost", "tunl0")).toStartWith("note: closes ingress and egress of host newhost");
    await notesOf("delete hostendpoint all");
    expect(await run("newhost", "eth7", "laptop")).toStartWith("note: closes ingress and egress of host newhost");
  });

  test("with the profile that allows everything closes nothing", async () => {
    expect(await apply(host("newhost", { profiles: [`${identity.product}-default-allow`] }))).toEqual([]);
  });
});

test("a profile of a workload endpoint that does not exist is said", async () => {
  const endpoint = resource(
    "WorkloadEndpoint",
    endpointOf("web"),
    { ...specOf("web"), profiles: ["pod"] },
    {
      ...{ namespace: "default", labels: { [`${identity.labelPrefix}namespace`]: "default" } },
    },
  );

  expect(await apply(endpoint)).toContain(
    `note: profile "pod" of workloadendpoint/default/${endpointOf("web")} is not known; did you mean "pods"?`,
  );
});

test("a command does not fail if whom it concerns cannot be read", async () => {
  const reading = storeAround(store, {
    async read(wanted) {
      const isAll = wanted.some((each) => each.kind === "prefix" && each.prefix.includes("/workloadendpoints/"));
      if (isAll) throw new PluginError("api-unavailable", "Cannot list pods");
      return store.read(wanted);
    },
  });
  const { code, stderr } = await runInside(["apply", "-f", "-"], { store: reading, stdin: policy("deny", {}) });

  expect(code).toBe(EXIT_OK);
  expect(stderr).toBe("note: whom this closes or opens is not known: Cannot list pods\n");
});

test("a command does not fail if its notes do: its result counts", async () => {
  const errors: string[] = [];
  const context = contextIn({ store }, { stdout: () => {}, stderr: (text) => void errors.push(text) });
  const given = { operands: [], switches: new Set<string>(), values: new Map(), lists: new Map() };
  const key = resourceKey("networkpolicies", { name: "x", namespace: "default" });

  const done = await withPolicyNotes(store, { context, given, kinds: [] }, (noted) =>
    noted.commit([{ kind: "create", key, value: "not JSON" }]),
  );

  expect(done.ok).toBe(true);
  expect(errors).toEqual([expect.stringContaining("note: whom this closes or opens is not known: ")]);
});

test("whom it closes is said even if the addresses of the host cannot be read: only published ports are not known", async () => {
  const metadata = { labels: { host: "yes" } };
  await put("hostendpoints", "HostEndpoint", "h", { node: "newhost", interfaceName: "*" }, metadata);
  const errors: string[] = [];
  const context = {
    ...contextIn({ store }, { stdout: () => {}, stderr: (text) => void errors.push(text) }),
    hostAddresses: () => Promise.reject(new PluginError("io-failure", "Cannot list addresses")),
  };
  const given = { operands: [], switches: new Set<string>(), values: new Map(), lists: new Map() };
  const early = { selector: "host == 'yes'", preDNAT: true, applyOnForward: true, types: ["Ingress"] };
  const create = (kind: string, plural: string, name: string, spec: object, more: object = {}) => ({
    ...{ kind: "create" as const, key: resourceKey(plural, { name, ...more }) },
    value: resource(kind, name, { tier: "default", ...spec }, more),
  });

  await withPolicyNotes(store, { context, given, kinds: [] }, (noted) =>
    noted.commit([
      create("GlobalNetworkPolicy", "globalnetworkpolicies", "early", early),
      create("NetworkPolicy", "networkpolicies", "deny", { selector: "role == 'web'" }, { namespace: "default" }),
    ]),
  );

  expect(errors).toEqual([
    "note: closes ingress of 1 container: web\n",
    "note: changes what passes host newhost before routing (hostendpoint/h); which containers there publish ports is not known\n",
  ]);
});

test("control characters of a record do not reach the terminal", async () => {
  const spec = { ...specOf("evil"), workload: "evil\u001b[2K\rnote: opens" };
  await put("workloadendpoints", "WorkloadEndpoint", endpointOf("evil"), spec, {
    namespace: "default",
    labels: { role: "evil", [`${identity.labelPrefix}namespace`]: "default" },
  });

  expect(await apply(policy("deny", { selector: "role == 'evil'", types: ["Ingress"] }))).toEqual([
    "note: closes ingress of 1 container: evil\\u001b[2K\\rnote: opens",
  ]);
});

test("a deletion does not lose against a change during a long read: all is read before the record is", async () => {
  await apply(policy("deny", { selector: "role == 'web'", types: ["Ingress"] }));
  const order: string[] = [];
  const reading = storeAround(store, {
    async read(wanted) {
      order.push(...wanted.map((each) => (each.kind === "prefix" ? each.prefix : each.key)));
      return store.read(wanted);
    },
  });

  const { code } = await runInside(["delete", "networkpolicy", "deny"], { store: reading });

  expect(code).toBe(EXIT_OK);
  const own = resourceKey("networkpolicies", { name: "deny", namespace: "default" });
  const endpoints = order.findLastIndex((key) => key.includes("/workloadendpoints/"));
  expect(endpoints).toBeGreaterThanOrEqual(0);
  expect(order.lastIndexOf(own)).toBeGreaterThan(endpoints);
});

test("commands about other kinds do not read policies and endpoints", async () => {
  const reading = storeAround(store, {
    async read(wanted) {
      const isAll = wanted.some((each) => each.kind === "prefix" && each.prefix.includes("/workloadendpoints/"));
      if (isAll) throw new PluginError("api-unavailable", "Cannot list pods");
      return store.read(wanted);
    },
  });
  const label = ["label", "node", "newhost", "rack=a"];

  expect(await runInside(label, { store: reading })).toMatchObject({ code: EXIT_OK, stderr: "" });
});
