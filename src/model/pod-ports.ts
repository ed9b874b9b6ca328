/** The ports of a pod that policies can name, or that have a port of the host. Pure. */
import { isObject } from "./shape.ts";

type Fields = Readonly<Record<string, unknown>>;

const PROTOCOLS = ["TCP", "UDP", "SCTP"];

export interface PodPort {
  readonly name?: string;
  readonly protocol: string;
  readonly port: number;
  readonly hostPort?: number;
  readonly hostIP?: string;
}

/** `spec`: of the pod. */
export function portsOfPod(spec: Fields): readonly PodPort[] {
  const containers = [spec["containers"], spec["initContainers"]].flatMap((list) => (Array.isArray(list) ? list : []));
  return containers
    .filter(isObject)
    .flatMap(({ ports }) => (Array.isArray(ports) ? ports.filter(isObject).flatMap(portOf) : []));
}

function portOf({ name, protocol = "TCP", containerPort, hostPort, hostIP }: Fields): readonly PodPort[] {
  const isNamed = typeof name === "string" && name !== "";
  const hasHostPort = typeof hostPort === "number" && hostPort !== 0;
  if (typeof containerPort !== "number" || containerPort === 0 || (!isNamed && !hasHostPort)) return [];
  if (typeof protocol !== "string" || !PROTOCOLS.includes(protocol)) return [];
  return [
    {
      ...(isNamed ? { name } : {}),
      protocol,
      port: containerPort,
      ...(hasHostPort ? { hostPort } : {}),
      ...(typeof hostIP === "string" && hostIP !== "" ? { hostIP } : {}),
    },
  ];
}
