import { beforeEach, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../../config/installed-network-list.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { EtcdFailure } from "../../datastore/etcd/failure.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { openDatastore } from "../../datastore/open.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";
import { CONFIG_FILE, OTHER_CONFIG_FILE } from "./options.ts";

/** What a command opens, given these options, variables and files. */
async function opened(
  words: string,
  surroundings: AdminSurroundings = {},
): Promise<{ code: number; stderr: string; settings: DatastoreSettings | undefined }> {
  let settings: DatastoreSettings | undefined;
  const { code, stderr } = await runInside(`datastore init ${words}`.trim().split(" "), {
    ...surroundings,
    openDatastore: async (chosen) => {
      settings = chosen;
      return openMemory();
    },
  });
  return { code, stderr, settings };
}

const NODE = JSON.stringify({ apiVersion: API_VERSION, kind: "Node", metadata: { name: "n1" } });

function etcd(...endpoints: readonly string[]): DatastoreSettings {
  return { kind: "etcd", source: { kind: "endpoints", endpoints } };
}

describe("which datastore", () => {
  const file = (text: string) => ({ files: { [CONFIG_FILE]: text } });

  test("is etcd on this host by default", async () => {
    expect((await opened("")).settings).toEqual(etcd("http://127.0.0.1:2379"));
  });

  describe("that nothing selects", () => {
    const PLACE = "http://127.0.0.1:2379";
    let store: Datastore;
    beforeEach(() => {
      store = openMemory();
    });
    const ctl = (words: string, more: AdminSurroundings = {}) =>
      runInside(words.split(" "), { openDatastore: async () => store, stdin: NODE, ...more });
    const written = async () => (await store.read([{ kind: "prefix", prefix: "" }])).answers.flat().length;

    test.each(["apply -f -", "create -f -", "datastore init", "ipam configure --strict-affinity true"])(
      "is not written by %j if it is not initialized",
      async (words) => {
        const { code, stdout, stderr } = await ctl(words);

        expect({ code, stdout, entries: await written() }).toEqual({ code: EXIT_FAILED, stdout: "", entries: 0 });
        expect(stderr).toContain(`Cannot write to etcd at "${PLACE}": it is only the default`);
        expect(stderr).toContain(`datastore init --etcd-endpoints ${PLACE}`);
      },
    );

    test("is written once it is initialized by name, and every write names it", async () => {
      expect((await ctl(`datastore init --etcd-endpoints ${PLACE}`)).code).toBe(EXIT_OK);
      const { code, stderr } = await ctl("apply -f -");

      expect(code).toBe(EXIT_OK);
      expect(stderr).toBe(`Using etcd at "${PLACE}", which is the default: nothing selects another datastore\n`);
    });

    test("is named if it contains nothing", async () => {
      expect((await ctl("get nodes")).stderr).toContain(`Using etcd at "${PLACE}"`);
    });
  });

  test.each(["get nodes", "apply -f -", "datastore init", "datastore check", "node register", "ipam show", "ipam gc"])(
    "%j stops at a damaged network config of this host instead of using another",
    async (words) => {
      let isOpened = false;
      const openDatastore = async () => {
        isOpened = true;
        return openMemory();
      };
      const config = `${NETWORK_CONFIG_DIRECTORY}/10-a.conflist`;
      const files = { [config]: '{\n  "name": "pods"\n  "plugins": []\n}' };
      const { code, stdout, stderr } = await runInside(words.split(" "), { files, openDatastore, stdin: NODE });

      expect({ code, isOpened }).toEqual({ code: EXIT_FAILED, isOpened: false });
      expect(stdout + stderr).toContain(`Cannot use ${config}:3:3: not valid JSON: expected "," or "}"`);
    },
  );

  test("that the user selects is used, whatever the network config of this host is", async () => {
    const files = { [`${NETWORK_CONFIG_DIRECTORY}/10-a.conflist`]: "{" };

    expect(await opened("--etcd-endpoints http://a:1", { files })).toMatchObject({
      ...{ code: EXIT_OK, settings: etcd("http://a:1") },
    });
  });

  test("is taken from options, then the environment, then the file", async () => {
    const given = { ...file("etcdEndpoints: http://file:1"), env: { ETCD_ENDPOINTS: "http://env:1" } };

    expect((await opened("", file("etcdEndpoints: http://file:1"))).settings).toEqual(etcd("http://file:1"));
    expect((await opened("", given)).settings).toEqual(etcd("http://env:1"));
    expect((await opened("--etcd-endpoints http://a:1,http://b:2", given)).settings).toEqual(
      etcd("http://a:1", "http://b:2"),
    );
  });

  test("takes a variable with the name of the product before one without", async () => {
    const env = { ETCD_ENDPOINTS: "http://other:1", [`${identity.environmentPrefix}ETCD_ENDPOINTS`]: "http://ours:1" };

    expect((await opened("", { env })).settings).toEqual(etcd("http://ours:1"));
  });

  test("is taken from the file with the other name if the usual one does not exist, and from -c", async () => {
    const files = { [OTHER_CONFIG_FILE]: "etcdEndpoints: http://cfg:1", "/tmp/x": "etcdEndpoints: http://x:1" };

    expect((await opened("", { files })).settings).toEqual(etcd("http://cfg:1"));
    expect((await opened("", { files: { ...files, [CONFIG_FILE]: "etcdEndpoints: http://yaml:1" } })).settings).toEqual(
      etcd("http://yaml:1"),
    );
    expect((await opened("-c /tmp/x", { files })).settings).toEqual(etcd("http://x:1"));
  });

  test("reads every field of the peer's file", async () => {
    const orchestrator = {
      datastoreType: "kubernetes",
      kubeconfig: "/k",
      k8sAPIEndpoint: "https://api:6443",
      k8sAPIToken: "t0ken",
      k8sCAFile: "/ca",
      k8sCertFile: "/cert",
      k8sKeyFile: "/key",
      k8sCurrentContext: "blue",
      k8sInsecureSkipTLSVerify: false,
      k8sDisableNodePoll: true,
      k8sClientQPS: 50,
      usePodCIDR: false,
    };
    const envelope = { apiVersion: API_VERSION, kind: `${identity.title}APIConfig`, metadata: {}, spec: orchestrator };
    const { settings, stderr } = await opened("", file(JSON.stringify(envelope)));

    expect(settings).toEqual({
      kind: "orchestrator",
      access: {
        kubeconfigs: ["/k"],
        apiRoot: "https://api:6443",
        token: "t0ken",
        certificateAuthorityFile: "/ca",
        clientCertificateFile: "/cert",
        clientKeyFile: "/key",
        context: "blue",
      },
    });
    expect(stderr).toContain("k8sClientQPS");
    expect(stderr).toContain("has no effect");
    expect(stderr).not.toContain("t0ken");
  });

  test("of etcd may have its user, password and certificates in the file", async () => {
    const inline = { etcdKey: "KEY", etcdCert: "CERT", etcdCACert: "CA" };
    const user = { etcdUsername: "root", etcdPassword: "p@ss/w:rd" };
    const etcdEndpoints = "https://a:1,https://b:2";
    const { settings } = await opened("", file(JSON.stringify({ etcdEndpoints, ...inline, ...user })));

    const endpoints = ["https://root:p%40ss%2Fw%3Ard@a:1", "https://root:p%40ss%2Fw%3Ard@b:2"];
    expect(settings).toEqual({
      kind: "etcd",
      source: { kind: "endpoints", endpoints },
      inline: { key: "KEY", cert: "CERT", caCert: "CA" },
    });
  });

  test.each([
    ["etcdCACert: C\netcdCACertFile: /c", "both given"],
    ["etcdCert: C", "belong together"],
    ["etcdUsername: root", "belong together"],
    ["etcdUsername: root\netcdPassword: x\netcdDiscoverySrv: example.org", "discovery domain"],
    ["k8sInsecureSkipTLSVerify: true", "insecure-skip-tls-verify"],
    ["spec: {datastoreType: etcdv3}\netcdEndpoints: http://a:1", "settings are under"],
    ["etcdEndpiont: x", "did you mean"],
  ])("refuses the file %j", async (text, reason) => {
    const { code, stderr, settings } = await opened("", file(text));

    expect([code, settings]).toEqual([EXIT_FAILED, undefined]);
    expect(stderr).toContain(reason);
  });

  test("--context selects a context, of the given kubeconfig or of the default one", async () => {
    const env = { HOME: "/home/x" };

    expect((await opened("--datastore-type kubernetes --context blue", { env })).settings).toEqual({
      kind: "orchestrator",
      access: { kubeconfigs: ["/home/x/.kube/config"], context: "blue" },
    });
    expect((await opened("--context blue --etcd-endpoints http://a:1")).code).toBe(EXIT_USAGE);
  });

  test("merges settings one by one, but takes endpoints from one source only", async () => {
    const env = { ETCD_DISCOVERY_SRV: "example.org" };
    const both = await opened("", { ...file("spec:\n  etcdEndpoints: http://file:1"), env });

    expect(both.settings).toEqual({ kind: "etcd", source: { kind: "discovery", domain: "example.org" } });
    expect(await opened("--etcd-endpoints http://a:1 --etcd-discovery-srv b.org")).toMatchObject({
      code: EXIT_FAILED,
      settings: undefined,
    });
  });

  test("supports the embedded datastore", async () => {
    const env = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: "/x/y.db" };

    expect((await opened("", { env })).settings).toEqual({ kind: "embedded", path: "/x/y.db" });
    expect((await opened("--datastore-path /z.db", { env })).settings).toEqual({ kind: "embedded", path: "/z.db" });
    expect((await opened("", { ...file(""), env: { DATASTORE_TYPE: "" } })).settings?.kind).toBe("etcd");
  });

  test("supports the orchestrator's API, with the kubeconfigs that kubectl would use", async () => {
    const env = { DATASTORE_TYPE: "kubernetes", HOME: "/home/me", KUBECONFIG: "/a:/b:" };
    const withFiles = (...kubeconfigs: readonly string[]) =>
      ({ kind: "orchestrator", access: { kubeconfigs } }) as const;

    expect((await opened("", { env })).settings).toEqual(withFiles("/a", "/b"));
    expect((await opened("--kubeconfig /c:d", { env })).settings).toEqual(withFiles("/c:d"));
    expect((await opened("", { env: { ...env, KUBECONFIG: "" } })).settings).toEqual(
      withFiles("/home/me/.kube/config"),
    );
    const inPod = { ...env, KUBECONFIG: "", KUBERNETES_SERVICE_HOST: "10.96.0.1" };
    expect((await opened("", { env: inPod })).settings).toEqual({ kind: "orchestrator", access: {} });
  });

  test("ignores variables of other tools, but refuses options that have no effect", async () => {
    const env = { KUBECONFIG: "/no/such:/file", ETCD_KEY_FILE: "/no/such.pem", DATASTORE_PATH: "/x" };
    const embedded = { env: { ...env, DATASTORE_TYPE: "embedded" } };

    expect((await opened("", embedded)).settings).toEqual({ kind: "embedded", path: "/x" });
    expect((await opened("", { env: { KUBECONFIG: "/no/such" } })).settings?.kind).toBe("etcd");
    expect((await opened("--etcd-endpoints http://a:1", embedded)).code).toBe(EXIT_USAGE);
    expect((await opened("--datastore-path /y")).code).toBe(EXIT_USAGE);
  });

  describe("if nothing selects one", () => {
    const FILE = `${NETWORK_CONFIG_DIRECTORY}/10-pods.conflist`;
    const plugin = { type: identity.product, ipam: { type: identity.ipamType } };
    const list = (fields: object, type = identity.product) =>
      JSON.stringify({
        name: "pods",
        cniVersion: "1.0.0",
        plugins: [{ ...plugin, ...fields, type }, { type: "portmap" }],
      });
    const embedded = { datastore_type: "embedded", datastore_path: "/x/y.db" };

    test("is that of the installed network config, which is named on stderr when the datastore is created", async () => {
      const found = await opened("", {
        files: { [FILE]: list(embedded), [CONFIG_FILE]: "# nothing\n" },
        env: { KUBECONFIG: "/a" },
      });

      expect(found).toMatchObject({ code: EXIT_OK, settings: { kind: "embedded", path: "/x/y.db" } });
      expect(found.stderr).toBe(`Using the embedded datastore of network config "${FILE}"\n`);
    });

    test("and containers run that it cannot know: put the copy back before it is created again", async () => {
      const surroundings = {
        files: { [FILE]: list(embedded) },
        hostLinks: { marks: new Set(["pods/c1/eth0", "pods/c1/eth1", "pods/c2/eth0", "other/c3/eth0"]) },
        store: openMemory(),
      };
      const read = await runInside(["get", "ippools"], surroundings);
      const [first, second] = [
        await runInside(["datastore", "init"], surroundings),
        await runInside(["datastore", "init"], surroundings),
      ];
      const elsewhere = await runInside(["get", "ippools"], { ...surroundings, hostLinks: {} });

      expect(read.stderr).toContain("2 containers run here: put its copy back;");
      expect(first.stderr).toContain("note: 2 containers run here that it does not know");
      expect(second.stderr).not.toContain("containers run");
      expect(elsewhere.stderr).not.toContain("containers run");
    });

    describe("and exists already, is named on stderr only if it matters", () => {
      const notice = `Using the embedded datastore of network config "${FILE}"\n`;
      const run = async (command: string, openDatastore = async () => openMemory()) => {
        const directory = temporaryDirectory("choice");
        const path = join(directory.path, "y.db");
        writeFileSync(path, "");
        const files = { [FILE]: list({ ...embedded, datastore_path: path }) };
        return await runInside(command.split(" "), { files, openDatastore });
      };
      const unreadable = async () => {
        throw new PluginError("datastore-unavailable", "Cannot use the datastore");
      };

      const initialized = async () => {
        const store = openMemory();
        await runInside(["datastore", "init"], { store });
        return store;
      };

      test.each(["datastore init", "get ippools -o json", "ipam show", "status"])("not by %s", async (command) => {
        expect((await run(command)).stderr).not.toContain("Using");
      });

      test.each(["datastore check", "get ippools --log-level debug"])("by %s", async (command) => {
        expect((await run(command)).stderr).toStartWith(notice);
      });

      test.each(["get ippools", "describe ippools", "delete ippools --all"])(
        "by %s if nothing is found and nobody has initialized it, maybe because it is the wrong one",
        async (command) => {
          expect((await run(command)).stderr).toBe(`${notice}No resources found.\n`);
          expect((await run(command, initialized)).stderr).toBe("No resources found.\n");
        },
      );

      test("before an error of the command or of one resource, and once", async () => {
        for (const failed of [await run("get ippools", unreadable), await run("delete ippool a b")]) {
          expect(failed.code).toBe(EXIT_FAILED);
          expect(failed.stderr).toStartWith(`${notice}error: `);
          expect(failed.stderr.split("Using")).toHaveLength(2);
        }
      });

      test("not before the error of a wrong call", async () => {
        expect((await run("get nonsense")).stderr).not.toContain("Using");
      });
    });

    test("is used with the kubeconfig of the caller, if one is given", async () => {
      const plugin = {
        datastore_type: "kubernetes",
        kubernetes: { kubeconfig: "/plugin" },
        policy: { k8s_auth_token: "t" },
      };
      const files = { [FILE]: list(plugin) };
      const using = (...kubeconfigs: readonly string[]) => ({ kind: "orchestrator", access: { kubeconfigs } }) as const;
      const asAdmin = await opened("--log-level debug", { files, env: { KUBECONFIG: "/admin:/more" } });

      expect(asAdmin.settings).toEqual(using("/admin", "/more"));
      expect(asAdmin.stderr).toStartWith(
        `Using the orchestrator datastore of network config "${FILE}" with the kubeconfig of KUBECONFIG\n`,
      );
      expect((await opened("--kubeconfig /other", { files, env: { KUBECONFIG: "/a" } })).settings).toEqual(
        using("/other"),
      );
      expect((await opened("--kubeconfig /other", { files: { [FILE]: list(embedded) } })).code).toBe(EXIT_USAGE);
    });

    test("is that of the first config that runs our plugin", async () => {
      const files = {
        [`${NETWORK_CONFIG_DIRECTORY}/05-broken.conflist`]: "{",
        [`${NETWORK_CONFIG_DIRECTORY}/06-other.conflist`]: list({ etcd_endpoints: "http://other:1" }, "bridge"),
        [`${NETWORK_CONFIG_DIRECTORY}/07-copy.conflist.orig`]: list({ etcd_endpoints: "http://copy:1" }),
        [`${NETWORK_CONFIG_DIRECTORY}/08-single.conf`]: JSON.stringify({
          ...{ name: "pods", cniVersion: "1.0.0", ...plugin },
          etcd_endpoints: "http://single:1",
        }),
        [FILE]: list(embedded),
      };

      expect((await opened("", { files })).settings).toEqual(etcd("http://single:1"));
    });

    test.each<[string, string, AdminSurroundings]>([
      ["an option", "--etcd-endpoints http://a:1", {}],
      ["the environment", "", { env: { ETCD_ENDPOINTS: "http://a:1" } }],
      ["the file", "", { files: { [CONFIG_FILE]: "etcdEndpoints: http://a:1" } }],
    ])("is not looked for: %s selects one", async (_source, words, { files, env }) => {
      const found = await opened(words, { files: { ...files, [FILE]: list(embedded) }, ...(env && { env }) });

      expect(found).toMatchObject({ settings: etcd("http://a:1"), stderr: "" });
    });

    test("is refused, naming the file, if our plugin would refuse the config", async () => {
      const { code, stderr, settings } = await opened("", { files: { [FILE]: list({ datastore_type: "sqlite" }) } });

      expect({ code, settings }).toEqual({ code: EXIT_FAILED, settings: undefined });
      expect(stderr).toContain(FILE);
      expect(stderr).toContain("datastore_type");
    });
  });

  test.each([
    ["etcdEndpoint: http://a:1", '"etcdEndpoints"'],
    ["etcdEndpoints: [a]", "must be a string"],
    ["- a", "does not contain an object"],
    ["a: [", "YAML"],
    ["etcdEndpoints: http://a:1\netcdEndpoints: http://b:1", "line 2"],
    ["datastoreType: etcd", "datastore_type"],
  ])("refuses the file %p", async (text, hint) => {
    const { code, stderr, settings } = await opened("", file(text));

    expect({ code, settings }).toEqual({ code: EXIT_FAILED, settings: undefined });
    expect(stderr).toContain(hint);
  });

  test("reports the source of an invalid setting without its secrets", async () => {
    const { code, stderr } = await opened("", { env: { ETCD_ENDPOINTS: "ftp://user:hidden-word@a:1" } });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("ETCD_ENDPOINTS");
    expect(stderr).not.toContain("hidden-word");
  });

  test("requires the files named in options", async () => {
    expect(await opened("--config /no/such.yaml")).toMatchObject({
      code: EXIT_FAILED,
      stderr: expect.stringContaining("there is no such file"),
    });
    const tls = "--etcd-endpoints https://a:1 --etcd-ca-cert-file /no/such.pem";
    expect(await opened(tls)).toMatchObject({ code: EXIT_FAILED, settings: undefined });
  });
});

describe("a refused connection", () => {
  const refused = async () => {
    const diagnosis = { stage: "connect", effect: "none", cure: "moment", advice: "check that etcd runs" } as const;
    const cause = new EtcdFailure(diagnosis, "refused");
    throw new PluginError("datastore-unavailable", "Cannot use the datastore", {
      cause,
      details: "check that etcd runs",
    });
  };

  test.each(["get nodes", "apply -f -", "datastore check"])(
    "of %s, if nothing is configured, names the embedded datastore",
    async (words) => {
      const { code, stdout, stderr } = await runInside(words.split(" "), { openDatastore: refused, stdin: NODE });

      expect(code).toBe(EXIT_FAILED);
      expect(stdout + stderr).toContain("no datastore is configured, so the default etcd endpoint was tried");
      expect(stdout + stderr).toContain("DATASTORE_TYPE=embedded");
    },
  );

  test("of a configured etcd is about etcd", async () => {
    const env = { ETCD_ENDPOINTS: "http://10.0.0.1:2379" };

    expect((await runInside(["get", "nodes"], { openDatastore: refused, env })).stderr).toContain(
      "check that etcd runs",
    );
  });
});

describe("datastore init", () => {
  test("initializes an empty datastore, once", async () => {
    const store = openMemory();
    const first = await runInside(["datastore", "init", "-o", "json"], { store });
    const { revision } = await store.read([]);
    const second = await runInside(["datastore", "init", "-o", "json"], { store });

    expect(JSON.parse(first.stdout)).toMatchObject({ state: "initialized" });
    expect(JSON.parse(second.stdout)).toEqual({ ...JSON.parse(first.stdout), state: "already initialized" });
    expect((await store.read([])).revision).toBe(revision);
    expect((await runInside(["get", "clusterinfo", "-o", "yaml"], { store })).stdout).toContain("datastoreReady: true");
  });

  test("does not change a datastore that is marked as not ready", async () => {
    const store = openMemory();
    await runInside(["datastore", "init"], { store });
    await runInside(["patch", "clusterinfo", "default", "-p", "spec: {datastoreReady: false}"], { store });

    expect((await runInside(["datastore", "init"], { store })).code).toBe(EXIT_FAILED);
  });
});

describe("datastore check", () => {
  // biome-ignore lint/suspicious/noExplicitAny: what a script would read
  const check = async (words: string, surroundings: AdminSurroundings = {}): Promise<any> => {
    const { code, stdout } = await runInside(`datastore check -o json ${words}`.trim().split(" "), surroundings);
    return { code, ...JSON.parse(stdout), last: JSON.parse(stdout).stages.at(-1) };
  };

  test("distinguishes an uninitialized datastore from a ready one", async () => {
    const store = openMemory();

    expect(await check("", { store })).toMatchObject({ code: EXIT_FAILED, last: { stage: "ready", ok: false } });
    await runInside(["datastore", "init"], { store });
    expect(await check("", { store })).toMatchObject({ code: EXIT_OK, ok: true });
    expect((await runInside(["datastore", "check"], { store })).stdout).toContain("ready");
  });

  test.each([
    ["--datastore-type embedded --etcd-endpoints ftp://x", "settings"],
    ["--etcd-endpoints https://127.0.0.1:1 --etcd-ca-cert-file /no/such.pem", "files"],
    ["--etcd-endpoints http://127.0.0.1:1", "connect"],
  ])("names the stage: %p fails at %p", async (words, stage) => {
    const given: AdminSurroundings = { openDatastore };

    expect(await check(words, given)).toMatchObject({ code: EXIT_FAILED, ok: false, last: { stage, ok: false } });
  });

  test("does not create a missing embedded datastore", async () => {
    const directory = temporaryDirectory("no-store");
    const path = join(directory.path, "misspelt", "store.db");
    const words = `--datastore-type embedded --datastore-path ${path}`;

    expect(await check(words, { openDatastore })).toMatchObject({ code: EXIT_FAILED, last: { stage: "open" } });
    expect(existsSync(path)).toBe(false);
    directory.remove();
  });
});

describe("an embedded datastore that cannot be reached", () => {
  test("is not reported as missing, so that nobody creates another one", async () => {
    const directory = temporaryDirectory("no-store");
    const file = join(directory.path, "file");
    writeFileSync(file, "");
    const env = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: join(file, "store.db") };

    const { code, stderr } = await runInside(["get", "nodes"], { openDatastore, env });
    directory.remove();

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("part of its path is not a directory (check the path)");
  });
});

describe("an embedded datastore that does not exist", () => {
  const node = { stdin: NODE };

  async function run(words: string): Promise<AdminRun & { readonly isCreated: boolean }> {
    const directory = temporaryDirectory("no-store");
    const path = join(directory.path, "misspelt", "store.db");
    const env = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: path };
    const ran = await runInside(words.split(" "), { openDatastore, env, ...node });
    const isCreated = existsSync(path);
    directory.remove();
    return { ...ran, isCreated };
  }

  test.each([
    "get nodes",
    "replace -f -",
    "patch node n1 -p {}",
    "label node n1 a=b",
    "delete node n1",
    "ipam show",
    "ipam check",
    "ipam release --ip 10.0.0.1",
  ])("is not created by %s, which needs an existing one", async (words) => {
    const { code, isCreated, stderr } = await run(words);

    expect({ code, isCreated }).toEqual({ code: EXIT_FAILED, isCreated: false });
    expect(stderr).toContain(`"${identity.adminTool} datastore init"`);
  });

  test.each(["apply -f -", "create -f -", "ipam configure --strict-affinity true", "datastore init"])(
    "is created by %s",
    async (words) => {
      expect(await run(words)).toMatchObject({ code: EXIT_OK, isCreated: true });
    },
  );
});
