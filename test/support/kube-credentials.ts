/** Certificates and kubeconfigs of a test cluster, all new and in one directory. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Certificate, makeRoot, makeSigned } from "./certificates.ts";

/** The users that have a certificate from the start. */
const SUBJECTS = {
  admin: "/O=system:masters/CN=admin",
  "controller-manager": "/CN=system:kube-controller-manager",
  scheduler: "/CN=system:kube-scheduler",
} as const;

type KnownUser = keyof typeof SUBJECTS;

/** How a user proves who it is. */
type Proof = Certificate | { readonly token: string };

export interface KubeCredentials {
  readonly authority: Certificate;
  readonly server: Certificate;
  /** Signs and verifies the tokens of ServiceAccounts. */
  readonly tokens: Certificate;
  readonly admin: Certificate;
  /** Signs what API servers show to extensions of the API. */
  readonly frontProxyAuthority: Certificate;
  readonly frontProxy: Certificate;
  /** The path of the kubeconfig of a known user. */
  kubeconfig(user: KnownUser): string;
  /** Writes a kubeconfig; returns its path. */
  writeKubeconfig(name: string, proof: Proof): string;
  /** A certificate of another user. */
  makeUser(name: string, subject: string): Certificate;
  /** A certificate for the kubelet of a node, as client and as server. */
  makeNode(name: string, names: readonly string[]): Certificate;
}

export function makeKubeCredentials(directory: string, url: string, address: string): KubeCredentials {
  const authority = makeRoot(directory, "authority");
  const signed = (name: string, subject: string, names: readonly string[] = []) =>
    makeSigned(directory, name, authority, { subject, names });
  const writeKubeconfig = (name: string, proof: Proof) => {
    const path = join(directory, `${name}.kubeconfig`);
    writeFileSync(path, JSON.stringify(kubeconfigOf(url, authority, proof)), { mode: 0o600 });
    return path;
  };
  const users = new Map(
    Object.entries(SUBJECTS).map(([name, subject]) => {
      const certificate = signed(name, subject);
      return [name, { certificate, kubeconfig: writeKubeconfig(name, certificate) }] as const;
    }),
  );
  const user = (name: KnownUser) => {
    const found = users.get(name);
    if (found === undefined) throw new Error(`no certificate of ${name}`);
    return found;
  };
  const frontProxyAuthority = makeRoot(directory, "front-proxy-authority");
  const names = [`IP:${address}`, "DNS:kubernetes", "DNS:kubernetes.default.svc", "IP:10.96.0.1", "IP:fd00:96::1"];
  return {
    authority,
    server: signed("server", "/CN=kube-apiserver", names),
    tokens: makeRoot(directory, "tokens"),
    admin: user("admin").certificate,
    frontProxyAuthority,
    frontProxy: makeSigned(directory, "front-proxy", frontProxyAuthority, { subject: "/CN=front-proxy-client" }),
    kubeconfig: (name) => user(name).kubeconfig,
    writeKubeconfig,
    makeUser: (name, subject) => signed(name, subject),
    makeNode: (name, more) =>
      signed(`node-${name}`, `/O=system:nodes/CN=system:node:${name}`, [`DNS:${name}`, ...more]),
  };
}

/** Everything inside, so that the file can be copied to any place. */
function kubeconfigOf(server: string, authority: Certificate, proof: Proof): object {
  const user =
    "token" in proof
      ? { token: proof.token }
      : { "client-certificate-data": base64(proof.cert), "client-key-data": base64(proof.key) };
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "test", cluster: { server, "certificate-authority-data": base64(authority.cert) } }],
    users: [{ name: "test", user }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    "current-context": "test",
  };
}

function base64(path: string): string {
  return readFileSync(path).toString("base64");
}
