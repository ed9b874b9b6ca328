/**
 * Application layer policy: rules of policies that name HTTP methods and paths. This is its part of the node agent.
 *
 *   kubelet ── CSI ──> volume/                 gives a pod with a sidecar a volume: a directory with a socket
 *                        │ which pods          (earlier-sidecars/: the directories of pods with a sidecar before v3.29)
 *                        v
 *   PolicyCompiler ──> state/ ──> feed/ ══ agent.sock, lines of JSON: protocol/ ══> sidecar/ ──> judge/   decides each request
 *        ^                         │                                                  ^
 *        │ which sidecars report   │ release of the sidecar, as an annotation         │ authorization.sock: gRPC, ext_authz
 *        └─────────────────────────┤                                                  │
 *                                  v                                                Envoy, the proxy of the mesh
 *                                 pod                                                 ^
 *   mesh/                                    what the injector of a mesh adds to pods, and the filter of its proxies
 *   command/ (vendorctl alp), upgrade/       insert it, show it and upgrade it in a cluster
 *
 * The kernel lets a connection through by a rule with `http` only if the sidecar of the pod reports (the set of interfaces in
 * policy/compile/sidecar-interfaces.ts); what is HTTP in a rule is in src/http, and policy/judge has the same as slow judge.
 * `test/support/judge-request.ts` is the oracle for `judge/`; `test/alp` runs all of it.
 *
 * It is registered once each in `src/agent/features.ts`, `src/admin/main/commands.ts` and `src/upgrade/steps.ts`. Without the first
 * row the agent serves no sidecar, and rules with `http` match nothing. Besides these, `src/bin/sidecar.ts` runs it in pods, the release
 * has its files, and the detection of an upgrade asks whether it is used; the linter refuses any other import.
 * In a cluster it is off until pods have the sidecar; `kubeletVolumePluginPath: None` of the Installation turns off the volumes as well.
 */
import type { AgentAccess, Enforcement, Wait } from "./agent-access.ts";
import { syncPart } from "./earlier-sidecars/sync-part.ts";
import { feedSidecars } from "./feed/feed-sidecars.ts";
import { csiPart, removeVolumes } from "./volume/csi-part.ts";

export const applicationLayerPolicy = {
  start(agent: AgentAccess, wait: Wait) {
    const { volumes: ownVolumes, parts } = csiPart(agent, wait);
    const { volumes, parts: partsForEarlier } = syncPart(agent, ownVolumes, wait);
    return {
      parts: [...parts, ...partsForEarlier],
      follow: (enforcement: Enforcement) => feedSidecars(volumes, enforcement),
    };
  },
  uninstall: removeVolumes,
};
