import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { startFakeApi } from "../../../test/support/kube-api/fake-api.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { productMapping } from "../../datastore/kube/product-mapping.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { API_VERSION } from "../../identity.ts";
import { withClusterVersion } from "../../model/cluster-information.ts";
import { NETWORK_ANNOTATION } from "../../model/endpoint-labels.ts";
import { CLUSTER_INFORMATION, CONTAINER_LABELS, ENDPOINT } from "../../model/kinds.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";
import { resourceNames } from "./label-containers.ts";

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await connect("web", "c1");
});

function ctl(words: string, surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(words.split(" "), { store, hostName: "n1", ...surroundings });
}

/** As an ADD records it. */
async function connect(workload: string, containerID: string, labels: Record<string, string> = {}): Promise<void> {
  const name = { name: `n1-cni-${containerID}-eth0`, namespace: "default" };
  const endpoint = ENDPOINT.codec.make(
    { ...name, labels, annotations: { [NETWORK_ANNOTATION]: "pods" } },
    { orchestrator: "cni", node: "n1", workload, containerID, endpoint: "eth0", ipNetworks: ["10.0.0.1/32"] },
  );
  await store.commit([{ kind: "put", key: ENDPOINT.key(name), value: ENDPOINT.codec.write(endpoint) }]);
}

async function specOf(name: string): Promise<unknown> {
  return JSON.parse((await ctl(`get containerlabels ${name} -o json`)).stdout).spec;
}

describe("label container", () => {
  test("creates, changes and deletes the labels of a container of this host", async () => {
    expect(await ctl("label container web role=web tier=front")).toEqual({
      code: EXIT_OK,
      stdout: "containerlabels/n1.web labelled\n",
      stderr: "",
    });
    expect(await specOf("n1.web")).toEqual({ node: "n1", container: "web", labels: { role: "web", tier: "front" } });
    expect((await ctl("label container/web tier-")).stdout).toBe("containerlabels/n1.web labelled\n");
    expect((await ctl("label container web role=web")).stdout).toBe("containerlabels/n1.web unchanged\n");
    const refused = await ctl("label container web role=db");
    expect(refused.code).toBe(EXIT_FAILED);
    expect(refused.stderr).toContain('Cannot set label "role": it already has the value "web"');
    expect(refused.stderr).toContain("--overwrite");
    expect((await ctl("label container web role=db --overwrite")).stdout).toBe("containerlabels/n1.web labelled\n");
    expect(await specOf("n1.web")).toEqual({ node: "n1", container: "web", labels: { role: "db" } });
    expect((await ctl("label container web role --remove")).stdout).toBe("containerlabels/n1.web deleted\n");
    expect((await ctl("get containerlabels")).stderr).toContain("No resources found");
    expect((await ctl("label container web role-")).stdout).toBe("containerlabels/n1.web unchanged\n");
  });

  test("finds the resource about the container, whatever its name is", async () => {
    const spec = { node: "n1", container: "web", labels: { a: "1" } };
    const resource = { apiVersion: API_VERSION, kind: "ContainerLabels", metadata: { name: "mine" }, spec };
    await ctl("apply -f -", { stdin: JSON.stringify(resource) });

    expect((await ctl("label container web b=2")).stdout).toBe("containerlabels/mine labelled\n");
    expect(await specOf("mine")).toEqual({ ...spec, labels: { a: "1", b: "2" } });
    const second = { ...resource, metadata: { name: "other" } };
    expect((await ctl("apply -f -", { stdin: JSON.stringify(second) })).stderr).toContain('ContainerLabels "mine"');
  });

  test("takes another name if somebody else has the usual one", async () => {
    const spec = { network: "x", labels: { a: "1" } };
    const resource = { apiVersion: API_VERSION, kind: "ContainerLabels", metadata: { name: "n1.web" }, spec };
    await ctl("apply -f -", { stdin: JSON.stringify(resource) });

    expect((await ctl("label container web b=2")).stdout).toMatch(/^containerlabels\/n1\.web-[0-9a-f]{8} labelled\n$/);
  });

  test("never writes to the labels of a container whose node and name read the same together", async () => {
    await ctl("label container x.Web_1 --node n1 a=b");
    await ctl("label container Web_1 --node n1.x role=admin");
    await ctl("label container x.web --node n1 a=b");
    await ctl("label container web --node n1.x role=admin");

    const { items } = JSON.parse((await ctl("get containerlabels -o json")).stdout);
    const specs = items.map(({ spec }: { spec: object }) => spec);
    expect(specs).toHaveLength(4);
    expect(specs).toContainEqual({ node: "n1", container: "x.Web_1", labels: { a: "b" } });
    expect(specs).toContainEqual({ node: "n1.x", container: "Web_1", labels: { role: "admin" } });
    expect(specs).toContainEqual({ node: "n1", container: "x.web", labels: { a: "b" } });
    expect(specs).toContainEqual({ node: "n1.x", container: "web", labels: { role: "admin" } });
  });

  test("refuses if others have both of its names", async () => {
    for (const [index, name] of resourceNames({ node: "n1", container: "web" }).entries()) {
      const spec = { network: `x${index}`, labels: { a: "1" } };
      const resource = { apiVersion: API_VERSION, kind: "ContainerLabels", metadata: { name }, spec };
      await ctl("apply -f -", { stdin: JSON.stringify(resource) });
    }
    const { code, stderr } = await ctl("label container web b=2");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(
      'Cannot label container "web" of node "n1": ContainerLabels "n1.web" is about network "x0"',
    );
    expect((await ctl("get containerlabels -o json")).stdout).not.toContain('"b"');
  });

  test("leaves a record alone that is about another container by the time of the write", async () => {
    await ctl("label container web a=1");
    const other = CONTAINER_LABELS.codec.make({ name: "n1.web" }, { network: "pods", labels: { mine: "1" } });
    const key = CONTAINER_LABELS.key({ name: "n1.web" });
    let reads = 0;
    const raced: Datastore = Object.assign(Object.create(store), {
      read: async (wanted: Parameters<Datastore["read"]>[0]) => {
        const answer = await store.read(wanted);
        reads += 1;
        if (reads === 1) await store.commit([{ kind: "put", key, value: CONTAINER_LABELS.codec.write(other) }]);
        return answer;
      },
    });
    const { stdout } = await ctl("label container web b=2", { store: raced });

    expect(stdout).toMatch(/^containerlabels\/n1\.web-[0-9a-f]{8} labelled\n$/);
    expect(await specOf("n1.web")).toEqual({ network: "pods", labels: { mine: "1" } });
  });

  test("says that nobody has the name, and what may have been meant", async () => {
    const { code, stderr } = await ctl("label container wbe role=web");

    expect(code).toBe(EXIT_OK);
    expect(stderr).toContain('node "n1" has no container "wbe"');
    expect(stderr).toContain('did you mean "web"?');
    expect((await ctl("label container web role=web --node n2")).stderr).toContain('node "n2" has no container "web"');
  });

  test.each(["4f2a", "4f2a99c0ffee", "4f2a99c0ffee11112222"])(
    "refuses the ID %s, and names its container",
    async (id) => {
      await connect("db", "4f2a99c0ffee11112222");
      const { code, stderr } = await ctl(`label container ${id} role=db`);

      expect(code).toBe(EXIT_FAILED);
      expect(stderr).toContain(`Cannot label container "${id}": it is the ID of container "db" (give its name: `);
      expect(stderr).toContain("label container db …");
      expect((await ctl("get containerlabels")).stdout).toBe("");
    },
  );

  test("takes a name that begins as the ID of another, and removes labels that were given to an ID", async () => {
    await ctl("label container beef role=early");
    await connect("db", "beef99c0ffee11112222");
    await connect("dead", "c2");
    await connect("cache", "dead99c0ffee11112222");

    expect((await ctl("label container dead role=db")).stdout).toBe("containerlabels/n1.dead labelled\n");
    expect((await ctl("label container dead role=db --node n2")).stdout).toBe("containerlabels/n2.dead labelled\n");
    expect((await ctl("label container beef role-")).stdout).toBe("containerlabels/n1.beef deleted\n");
  });

  test("says that agents of an earlier release do not count the labels", async () => {
    const information = withClusterVersion(CLUSTER_INFORMATION.codec.make({ name: "default" }, {}), "v3.1.0");
    const value = CLUSTER_INFORMATION.codec.write(information);
    expect((await ctl("label container web a=b")).stderr).toBe("");
    await store.commit([{ kind: "put", key: CLUSTER_INFORMATION.key({ name: "default" }), value }]);

    const { stdout, stderr } = await ctl("label container web role=web", { version: "v3.2.0" });
    expect(stdout).toBe("containerlabels/n1.web labelled\n");
    expect(stderr).toContain("note: node agents of v3.1.0 may not know labels of containers: ");
    expect((await ctl("label container web tier=x", { version: "v3.1.0" })).stderr).toBe("");
  });

  test("says what has the endpoint of a container in a pod of podman", async () => {
    expect((await ctl("label container main role=db")).stderr).toContain("of a podman pod, give the name of the pod");
  });

  test.each(["none", "host"])("says that containers in network %s have no endpoint", async (name) => {
    const { stderr } = await ctl(`label network ${name} role=db`);

    expect(stderr).toContain(`runtimes connect a container in network "${name}" to no network`);
    expect(stderr).not.toContain("the labels apply");
  });

  test("labels every container of a network", async () => {
    expect((await ctl("label network pods tier=x")).stdout).toBe("containerlabels/network.pods labelled\n");
    expect(await specOf("network.pods")).toEqual({ network: "pods", labels: { tier: "x" } });
    expect((await ctl("label network pod tier=x")).stderr).toContain("no container is connected to network");
  });

  test.each([
    ["label container", "The name of the container is required"],
    ["label container role=web", "The name of the container is required"],
    ["label container web", "At least one KEY=VALUE"],
    ["label network pods a=b --node n1", "--node can only be given with container"],
    ["label node n1 a=b --node n1", "--node can only be given with container"],
    ["label container my/web a=b", '"my/web" is not the name of a container: use letters, digits'],
    ["label container/my/web a=b", '"my/web" is not the name of a container: use letters, digits'],
    ["label container default/web a=b", 'there are no namespaces: leave out "default/"'],
    ["label network _x a=b", '"_x" is not the name of a network: use letters, digits'],
    ["label container web a=b --node Not/One", '"--node" is "Not/One"'],
    ["label container web a=b -n prod", "has no namespace"],
  ])("%s is refused", async (words, reason) => {
    const { code, stderr } = await ctl(words);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain(reason);
  });

  test("refuses labels that only the product sets", async () => {
    const { code, stderr } = await ctl("label container web vendor.org/namespace=kube-system");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(
      'Cannot label container "web" of node "n1": spec.labels: "vendor.org/namespace" is a label that only the product itself sets',
    );
  });

  test("writes nothing in a dry run", async () => {
    expect((await ctl("label container web a=b --dry-run")).stdout).toBe("containerlabels/n1.web labelled (dry run)\n");
    expect((await ctl("get containerlabels")).stdout).toBe("");
  });

  test.each(["", " --dry-run"])("is refused where all workloads are pods%s", async (option) => {
    const client = startFakeApi().connect();
    const ofPods = openKubeStore({ api: client, mappings: productMapping(() => "m"), close: async () => {} });
    const { code, stderr } = await ctl(`label container web a=b${option}`, { store: ofPods });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain('use "kubectl label pod"');
  });

  test("keeps what two callers set at the same moment", async () => {
    await Promise.all(["a", "b", "c"].map((key) => ctl(`label container web ${key}=1`)));

    expect(await specOf("n1.web")).toMatchObject({ labels: { a: "1", b: "1", c: "1" } });
  });
});

describe("labels of a container", () => {
  test("are those of each endpoint that it gets: get, describe and -l see them", async () => {
    await ctl("label container web role=web");
    await ctl("label network pods tier=x role=any");
    for (const container of ["c1", "c2"]) {
      await connect("web", container);
      expect((await ctl("get wep -l role=web,tier=x -o name")).stdout).toContain(`n1-cni-${container}-eth0\n`);
    }
    const endpoint = "n1-cni-c2-eth0";
    expect((await ctl(`get wep ${endpoint} --show-labels`)).stdout).toMatch(/tier=x,role=web$/m);
    expect((await ctl(`get wep ${endpoint} -o json`)).stdout).not.toContain("role");
    const described = (await ctl(`describe wep ${endpoint}`)).stdout;
    expect(described).toMatch(/^ {2}tier=x +from containerlabels\/network\.pods$/m);
    expect(described).toMatch(/^ {2}role=web +from containerlabels\/n1\.web$/m);
    expect((await ctl("describe containerlabels n1.web")).stdout).toContain(endpoint);
  });

  test("win over those of the endpoint, which cannot be given another value", async () => {
    await connect("web", "c1", { role: "old" });
    await ctl("label container web role=web");
    expect((await ctl("get wep -l role=old -o name")).stdout).toBe("");
    const { code, stderr } = await ctl("label wep n1-cni-c1-eth0 role=new --overwrite");

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain('ContainerLabels "n1.web" gives it the value "web", which wins');
    expect((await ctl("label wep n1-cni-c1-eth0 other=new")).code).toBe(EXIT_OK);
  });

  test.each([
    ["label container web --node n1 role=web", "label container web --node n1 role=new --overwrite"],
    ["label network pods role=web", "label network pods role=new --overwrite"],
  ])("that win are changed by the command that the refusal names: %s", async (words, remedy) => {
    await ctl(words);
    const { stderr } = await ctl("label wep n1-cni-c1-eth0 role=new");

    expect(stderr).toContain(remedy);
    expect((await ctl(remedy)).code).toBe(EXIT_OK);
    expect((await ctl("get wep -l role=new -o name")).stdout).toContain("n1-cni-c1-eth0");
  });

  test("are read only if the command looks at labels", async () => {
    await ctl("label container web role=web");
    const read: string[] = [];
    const counted: Datastore = Object.assign(Object.create(store), {
      read: (wanted: Parameters<Datastore["read"]>[0]) => {
        read.push(...wanted.map((each) => JSON.stringify(each)));
        return store.read(wanted);
      },
    });
    const isRead = async (words: string) => {
      read.length = 0;
      await ctl(words, { store: counted });
      return read.some((each) => each.includes(CONTAINER_LABELS.plural));
    };

    expect([await isRead("get wep"), await isRead("get wep n1-cni-c1-eth0 -o json")]).toEqual([false, false]);
    expect([await isRead("get wep -l role=web"), await isRead("get wep --show-labels")]).toEqual([true, true]);
  });

  test("are shown with its endpoint", async () => {
    await ctl("label container web role=web");

    expect((await ctl("get containers --show-labels")).stdout).toMatch(/^n1-cni-c1-eth0 .* role=web$/m);
    expect((await ctl("describe container web")).stdout).toContain("from containerlabels/n1.web");
  });

  test("a document of a container names the kinds that know containers", async () => {
    const { code, stderr } = await ctl("apply -f -", { stdin: JSON.stringify({ kind: "Container" }) });

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain("their endpoints in the network are workloadendpoints, their labels containerlabels");
  });

  test("are shown in a table of their own", async () => {
    await ctl("label container web role=web");

    expect((await ctl("get cl")).stdout).toMatch(/^n1\.web +n1 +web +role=web /m);
  });
});

describe("resourceNames()", () => {
  test.each([
    [{ node: "n1", container: "web" }, /^n1\.web$/],
    [{ network: "pods" }, /^network\.pods$/],
    [{ node: "n1", container: "My_Web" }, /^n1\.my-web-[0-9a-f]{8}$/],
    [{ node: "n1", container: "0_.-" }, /^n1\.0-[0-9a-f]{8}$/],
    [{ node: "n1", container: "x".repeat(300) }, /^n1\.x{200,}-[0-9a-f]{8}$/],
  ])("of %j are names that a resource can have", (target, pattern) => {
    const [short, long] = resourceNames(target);
    const decoded = (name: string) =>
      CONTAINER_LABELS.codec.decode({
        ...{ apiVersion: API_VERSION, kind: "ContainerLabels", metadata: { name } },
        spec: { ...target, labels: { a: "b" } },
      });

    expect(short).toMatch(pattern);
    expect([decoded(short).ok, decoded(long).ok]).toEqual([true, true]);
    expect(resourceNames({ node: "n1", container: "my-web" })[0]).toBe("n1.my-web");
  });
});
