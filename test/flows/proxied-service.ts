/** The Service of a flow site, carried out by the real kube-proxy of a node whose API server has nothing else. */
import type { End } from "../policy/policy-site.ts";
import type { Host } from "../support/host.ts";
import { startApiServer } from "../support/kube-apiserver.ts";
import { startKubeProxy } from "../support/kube-proxy.ts";
import { pollUntil } from "../support/poll.ts";

export interface ServicePlan {
  readonly node: string;
  /** IPv4 and IPv6. */
  readonly addresses: readonly string[];
  readonly nodeAddresses: readonly string[];
  readonly podRanges: readonly string[];
  readonly ports: readonly ServicePort[];
}

export interface ServicePort {
  readonly port: number;
  readonly nodePort: number;
  /** Of TCP and UDP. */
  readonly targetPort: number;
  readonly backends: readonly End[];
}

const NAMESPACE = "services";
const NAME = "web";
const PROTOCOLS = ["TCP", "UDP"] as const;
const FAMILIES = ["IPv4", "IPv6"] as const;

export async function startProxiedService(host: Host, plan: ServicePlan): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const server = await startApiServer({ serviceCidrs: plan.addresses.map(rangeOf) });
  stack.defer(() => server.stop());
  stack.use(await server.relayInto(host.netns));
  await server.createNamespace(NAMESPACE);
  await server.apply(
    objectsOf(plan)
      .map((each) => JSON.stringify(each))
      .join("\n---\n"),
  );
  const proxy = startKubeProxy(host, server, { node: plan.node, podRanges: plan.podRanges });
  stack.defer(() => proxy.kill());
  const isWritten = async () => {
    const { stdout } = await host.run(["nft", "list", "ruleset"]);
    return (
      plan.addresses.every((address) => stdout.includes(address)) &&
      backendsOf(plan).every((each) => stdout.includes(each))
    );
  };
  await pollUntil(isWritten, "kube-proxy to write its rules", 60_000);
  const all = stack.move();
  return { [Symbol.asyncDispose]: () => all.disposeAsync() };
}

function rangeOf(address: string): string {
  return address.includes(":")
    ? `${address.slice(0, address.indexOf("::"))}::/112`
    : `${address.split(".").slice(0, 2).join(".")}.0.0/16`;
}

function backendsOf({ ports }: ServicePlan): readonly string[] {
  return ports.flatMap(({ backends }) => backends.flatMap(({ addresses }) => addresses));
}

function objectsOf({ node, addresses, nodeAddresses, ports }: ServicePlan): readonly object[] {
  const servicePorts = ports.flatMap(({ port, nodePort, targetPort }) =>
    PROTOCOLS.map((protocol) => ({ name: portName(protocol, port), protocol, port, nodePort, targetPort })),
  );
  return [
    {
      ...{ apiVersion: "v1", kind: "Node", metadata: { name: node } },
      status: { addresses: nodeAddresses.map((address) => ({ type: "InternalIP", address })) },
    },
    {
      ...{ apiVersion: "v1", kind: "Service", metadata: { name: NAME, namespace: NAMESPACE } },
      spec: {
        ...{ type: "NodePort", ipFamilyPolicy: "RequireDualStack", ipFamilies: FAMILIES },
        ...{ clusterIP: addresses[0], clusterIPs: addresses, ports: servicePorts },
      },
    },
    ...FAMILIES.flatMap((addressType, family) =>
      ports.map(({ port, targetPort, backends }) => ({
        ...{ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType },
        metadata: {
          ...{ name: `${NAME}-${addressType.toLowerCase()}-${port}`, namespace: NAMESPACE },
          labels: { "kubernetes.io/service-name": NAME },
        },
        ports: PROTOCOLS.map((protocol) => ({ name: portName(protocol, port), protocol, port: targetPort })),
        // Only for endpoints of its node, a pod that reaches itself is masqueraded.
        endpoints: backends.map((backend) => ({ addresses: [backend.addresses[family]], nodeName: node })),
      })),
    ),
  ];
}

function portName(protocol: string, port: number): string {
  return `${protocol.toLowerCase()}-${port}`;
}
