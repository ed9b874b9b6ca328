/** The systemd unit of the node agent, as an installation puts it on a node. Pure. */
import type { Identity } from "../../src/identity.ts";

/** Where runtimes look for plugins: the agent is a name of the same executable, so that both are always of one release. */
const PROGRAMS = "/opt/cni/bin";

/**
 * What the agent is started with, wherever it is started. Its allocator gives memory back to the kernel as soon as nobody
 * calls, and takes it again with the next call: a quarter of a millisecond of it, for some 5 MB. Its code is compiled after
 * a tenth of the calls that it would usually take, but not by the last compiler, which takes 30 MB: 0.1 to 0.2 ms.
 */
export const NODE_ENVIRONMENT = {
  MIMALLOC_PURGE_DELAY: "-1",
  BUN_JSC_jitPolicyScale: "0.1",
  BUN_JSC_useFTLJIT: "0",
} as const;

export function nodeService({ nodeAgent, title, runDirectory }: Identity): string {
  const environment = Object.entries(NODE_ENVIRONMENT).map(([name, value]) => `Environment=${name}=${value}`);
  return `# Written from scripts/docs/node-service.ts. Install as /etc/systemd/system/${nodeAgent}.service, then
#   systemctl daemon-reload && systemctl enable --now ${nodeAgent}
[Unit]
Description=${title} node agent: serves the calls of the CNI plugins
# There before the first call, gone after the last one. Nobody needs it to start: without it the plugins work by themselves.
Before=containerd.service crio.service kubelet.service

[Service]
Type=exec
ExecStart=${PROGRAMS}/${nodeAgent}
# Memory that is free between two calls is kept for the next one, and code is compiled early.
${environment.join("\n")}
Restart=always
# So seldom that systemd never counts it as too often, and gives up.
RestartSec=5s
# The agent's first process alone is told to stop, and tells the one that serves the calls. Whatever that one runs for a call,
# another IPAM plugin perhaps, is left to finish it. If the first process dies, systemd ends all others before it starts a new one.
KillMode=mixed

# What is missing here is missing on purpose:
# - PrivateMounts, PrivateNetwork, PrivateTmp, ProtectSystem and all else that gives a service a mount or network
#   namespace of its own: the agent wires the host, and plugins do not hand calls to an agent in another namespace.
# - RuntimeDirectory: systemd would remove it at each stop, and others keep their files in ${runDirectory}.
#   The agent makes its own folder in it, for root alone.

[Install]
WantedBy=multi-user.target
`;
}
