import { describe, expect, test } from "bun:test";
import { containerOf } from "../model/container-labels.ts";
import { NETWORK_ANNOTATION, WITHOUT_IPAM_ANNOTATION } from "../model/endpoint-labels.ts";
import { ENDPOINT } from "../model/kinds.ts";
import { workloadEndpoint } from "../model/workload-endpoint.ts";
import { workloadEntity } from "./compile/entity.ts";
import { followedEndpoints } from "./followed-endpoints.ts";

const LABELS = { app: "web", tier: "front" };

function entry(node: string, pod: string) {
  const name = `${node}-k8s-${pod}-eth0`;
  const value = workloadEndpoint.make(
    { name, namespace: "shop", labels: LABELS },
    {
      ...{ node, orchestrator: "k8s", endpoint: "eth0", pod, containerID: "c1", interfaceName: "vend1" },
      ...{ ipNetworks: ["10.0.0.7/32"], profiles: ["kns.shop"], mac: "02:00:00:00:00:01" },
      ports: [{ name: "http", protocol: "TCP", port: 80 }],
    },
  );
  return { key: ENDPOINT.key({ name, namespace: "shop" }), value: ENDPOINT.codec.write(value), revision: "1" };
}

function decoded(source: ReturnType<typeof followedEndpoints>, node: string, pod: string) {
  const endpoint = source.decode(entry(node, pod));
  if (endpoint === undefined) throw new Error("not an endpoint");
  return endpoint;
}

describe("followedEndpoints()", () => {
  test("keeps endpoints of the own node whole", () => {
    const own = entry("here", "a");

    expect(followedEndpoints("here").decode(own)).toEqual(ENDPOINT.codec.read(own.value, own.key));
  });

  test("keeps of other nodes all that selectors and rules can depend on, and nothing else", () => {
    const whole = ENDPOINT.codec.read(entry("there", "a").value, "");
    const followed = decoded(followedEndpoints("here"), "there", "a");
    const seen = ({ labels, parents, addresses, ports }: ReturnType<typeof workloadEntity>) => ({
      ...{ labels, parents, addresses, ports },
    });

    expect(seen(workloadEntity(followed))).toEqual(seen(workloadEntity(whole)));
    expect(Object.keys(followed.spec).sort()).toEqual(["ipNetworks", "node", "ports", "profiles"]);
  });

  test("keeps of other nodes which addresses IPAM does not know, if our plugin has connected the pod", () => {
    const annotations = { [WITHOUT_IPAM_ANNOTATION]: '["10.0.0.7"]' };
    const followed = (more: Readonly<Record<string, string>>) => {
      const { key, value, revision } = entry("there", "a");
      const endpoint = ENDPOINT.codec.read(value, key);
      const metadata = { ...endpoint.metadata, annotations: { ...annotations, ...more } };
      return followedEndpoints("here").decode({
        key,
        revision,
        value: ENDPOINT.codec.write({ ...endpoint, metadata }),
      });
    };

    expect(followed({ [NETWORK_ANNOTATION]: "net" })?.metadata.annotations).toEqual(annotations);
    expect(followed({})?.metadata.annotations).toBeUndefined();
  });

  test("keeps of containers of other nodes what ContainerLabels can be about", () => {
    const { key, value, revision } = entry("there", "a");
    const whole = ENDPOINT.codec.read(value, key);
    const container = {
      ...whole,
      metadata: { ...whole.metadata, annotations: { [NETWORK_ANNOTATION]: "pods" } },
      spec: { ...whole.spec, orchestrator: "cni", workload: "web" },
    };
    const followed = followedEndpoints("here").decode({ key, revision, value: ENDPOINT.codec.write(container) });

    expect(followed && containerOf(followed)).toEqual({ node: "there", container: "web", network: "pods" });
    expect(followed && workloadEntity(followed).givers).toEqual(workloadEntity(container).givers);
    const source = followedEndpoints("here");
    const [one, two] = ["a", "b"].map((name) => {
      const named = { ...container, metadata: { ...container.metadata, name: `there-k8s-${name}-eth0` } };
      return source.decode({ key: ENDPOINT.key(named.metadata), revision, value: ENDPOINT.codec.write(named) });
    });
    expect(one?.metadata.annotations).toBeDefined();
    expect(one?.metadata.annotations).toBe(two?.metadata.annotations);
  });

  test("gives pods with the same labels and profiles one object for them", () => {
    const source = followedEndpoints("here");
    const [first, second] = [decoded(source, "there", "a"), decoded(source, "elsewhere", "b")];

    expect(second.metadata.labels).toBe(first.metadata.labels as NonNullable<typeof first.metadata.labels>);
    expect(second.spec.profiles).toBe(first.spec.profiles as NonNullable<typeof first.spec.profiles>);
    expect(second.spec.node).toBe("elsewhere");
  });
});
