/**
 * Configurations of a mesh's injector as releases up to v3.28 changed them: a container, two volumes and a mount of the proxy, with
 * the blank lines that their templates have. Written from what is known of them.
 */

import type { MeshMinor } from "../../src/alp/mesh/mesh-minor.ts";
import { identity } from "../../src/identity.ts";
import { injectorConfig } from "./injector-config.ts";

const CONTAINER = (version: string) => `- name: dikastes
  image: ${identity.product}/dikastes:${version}
  args: ["server", "-l", "/var/run/dikastes/dikastes.sock", "-d", "/var/run/felix/nodeagent/socket"]
  livenessProbe:
    exec:
      command:
      - /healthz
      - liveness
    initialDelaySeconds: 3
  volumeMounts:
  - mountPath: /var/run/dikastes
    name: dikastes-sock
  - mountPath: /var/run/felix
    name: felix-sync

`;

const VOLUMES = `- name: dikastes-sock
  emptyDir:
    medium: Memory
- name: felix-sync
  csi:
    driver: "csi.example.org"
`;

const MOUNT = `  - mountPath: /var/run/dikastes
    name: dikastes-sock
`;

export function formerInjectorConfig(minor: MeshMinor, version = "v3.26.0"): string {
  const config = injectorConfig(minor);
  const indentation = /^( *)volumes:$/m.exec(config)?.[1] ?? "";
  const indented = (text: string) => text.replace(/^(?=.)/gm, indentation);
  return config
    .replace(/^ *- mountPath: \/data\n *name: data\n/m, (found) => `${found}${indented(MOUNT)}`)
    .replace(/^ *volumes:$/m, (found) => `${indented(CONTAINER(version))}${found}`)
    .replace(/^ *- name: data\n *emptyDir: {}\n/m, (found) => `${found}${indented(VOLUMES)}`);
}
