/**
 * A real kube-apiserver with its own etcd, on free ports, with new certificates:
 *
 *   const problem = apiServerProblem();       // why there is none here
 *   const server = await startApiServer();    // ready; one per test file is enough
 *   await server.apply(yaml);
 *   const kubeconfig = await server.serviceAccount({ name: "vendor", clusterRole: "vendor" });
 *   const audit = server.startAudit();        // … audit.counts(kubeconfig.user)
 *   await server.stop();
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { partIfBuilt } from "../parts/build.ts";
import { type Daemon, startDaemon, sweepDaemons } from "./daemon.ts";
import { freePorts } from "./etcd.ts";
import { AUDIT_POLICY, type Audit, startAudit } from "./kube-audit.ts";
import { type KubeCredentials, makeKubeCredentials } from "./kube-credentials.ts";
import { type Kubectl, makeKubectl } from "./kubectl.ts";
import { relayIntoNetns } from "./tcp-relay.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

export interface ApiServerPlan {
  /** Where it runs; by default on this machine's loopback. */
  readonly place?: {
    /** The path of a network namespace. */
    readonly netns: string;
    readonly address: string;
  };
  /** Deployments, service accounts of new namespaces, pod garbage collection … need the first; pods without a nodeName the second. */
  readonly with?: readonly ("controller-manager" | "scheduler")[];
  /** One of each family for dual stack. */
  readonly serviceCidrs?: readonly string[];
  /** That of another server of the same cluster; its own etcd then stays empty. */
  readonly etcdOfCluster?: string;
  readonly apiServerFlags?: readonly string[];
  readonly controllerManagerFlags?: readonly string[];
  /** Its kube-apiserver and kube-controller-manager, with today's etcd and kubectl. By default today's too. */
  readonly release?: EarlierRelease;
}

/** Releases of Kubernetes that the soak has parts of. */
export type EarlierRelease = "1.24" | "1.30";

export interface ApiServer extends Kubectl {
  readonly url: string;
  /** Its etcd, which tests may also use as a datastore of their own. */
  readonly etcdEndpoint: string;
  readonly directory: string;
  readonly credentials: KubeCredentials;
  /** The path of the administrator's kubeconfig. */
  readonly adminKubeconfig: string;
  readonly etcd: Daemon;
  readonly apiServer: Daemon;
  /** The path of its audit log. */
  readonly auditLog: string;
  startAudit(): Audit;
  /** Starts the API server again with other ranges of Services. */
  setServiceCidrs(serviceCidrs: readonly string[]): Promise<void>;
  /** For a controller manager that starts only after the test has prepared the cluster. */
  startControllerManager(): Daemon;
  /** Makes it, and its etcd, reachable at the same URLs in a network namespace, for a server on loopback. */
  relayInto(netns: string): Promise<Disposable>;
  /** Ends every program at once and removes the data. */
  stop(): Promise<void>;
}

const AREA = "kube";
const LOOPBACK = /^(127\.|::1$)/;

/** Why there is no API server here; undefined if there is. */
export function apiServerProblem(release?: EarlierRelease): string | undefined {
  for (const part of ["kubernetes" as const, ...(release === undefined ? [] : [`kubernetes-${release}` as const])]) {
    const built = partIfBuilt(part);
    if ("missing" in built) return built.missing;
  }
  const missing = ["openssl", "curl"].filter((program) => Bun.which(program) === null);
  return missing.length === 0 ? undefined : `needs ${missing.join(", ")}`;
}

/** The path of a Kubernetes program; only if there is no problem. */
export function kubeProgram(
  name:
    | "etcd"
    | "kube-apiserver"
    | "kube-controller-manager"
    | "kube-scheduler"
    | "kube-proxy"
    | "kubelet"
    | "kubectl"
    | "agnhost"
    | "pause",
  release?: EarlierRelease,
): string {
  const isEarlier = release !== undefined && (name === "kube-apiserver" || name === "kube-controller-manager");
  const built = partIfBuilt(isEarlier ? `kubernetes-${release}` : "kubernetes");
  if ("missing" in built) throw new Error(built.missing);
  return join(built.path, name);
}

export async function startApiServer(plan: ApiServerPlan = {}): Promise<ApiServer> {
  sweepDaemons(AREA);
  const directory = temporaryDirectory(AREA);
  const auditLog = join(directory.path, AUDIT_LOG);
  const address = plan.place?.address ?? "127.0.0.1";
  const [port = 0, etcdPort = 0, peerPort = 0] = await freePorts(3);
  const inUrl = address.includes(":") ? `[${address}]` : address;
  const url = `https://${inUrl}:${port}`;
  const etcdEndpoint = `http://${inUrl}:${etcdPort}`;
  const credentials = makeKubeCredentials(directory.path, url, address);
  const enter = plan.place === undefined ? [] : ["nsenter", `--net=${plan.place.netns}`, "--"];
  const start = (name: Parameters<typeof kubeProgram>[0], flags: readonly string[], ready: () => Promise<unknown>) =>
    startDaemon({
      command: [...enter, kubeProgram(name, plan.release), ...flags],
      logFile: join(directory.path, `${name}.log`),
      ready,
    });

  const etcd = start("etcd", etcdFlags(directory.path, etcdEndpoint, `http://127.0.0.1:${peerPort}`), () =>
    curl(enter, [`${etcdEndpoint}/health`]),
  );
  const { authority, admin } = credentials;
  const identification = ["--cacert", authority.cert, "--cert", admin.cert, "--key", admin.key];
  const flagsOf = (changed: ApiServerPlan) =>
    apiServerFlags(directory.path, { address, port, etcdEndpoint, credentials, plan: changed });
  const apiServer = start("kube-apiserver", flagsOf(plan), () =>
    curl(enter, [...identification, `${url}/readyz?verbose`]),
  );
  const running: Daemon[] = [etcd, apiServer];
  const stop = async () => {
    await Promise.all(running.map((daemon) => daemon.kill()));
    directory.remove();
  };
  await apiServer.ready().catch(async (error) => {
    await stop();
    throw error;
  });
  const startPart = (name: "kube-controller-manager" | "kube-scheduler") => {
    const daemon = start(name, controllerFlags(plan, credentials)[name], async () => {});
    running.push(daemon);
    return daemon;
  };
  for (const part of plan.with ?? []) startPart(`kube-${part}`);

  return {
    ...makeKubectl([...enter, kubeProgram("kubectl")], credentials),
    url,
    etcdEndpoint,
    directory: directory.path,
    credentials,
    adminKubeconfig: credentials.kubeconfig("admin"),
    etcd,
    apiServer,
    auditLog,
    startAudit: () => startAudit(auditLog),
    setServiceCidrs: (serviceCidrs) =>
      apiServer.restart([...enter, kubeProgram("kube-apiserver", plan.release), ...flagsOf({ ...plan, serviceCidrs })]),
    startControllerManager: () => startPart("kube-controller-manager"),
    async relayInto(netns) {
      using relays = new DisposableStack();
      for (const each of [port, etcdPort]) relays.use(await relayIntoNetns(netns, each));
      return relays.move();
    },
    stop,
  };
}

function etcdFlags(directory: string, endpoint: string, peer: string): readonly string[] {
  return [
    `--data-dir=${join(directory, "etcd")}`,
    `--listen-client-urls=${endpoint}`,
    `--advertise-client-urls=${endpoint}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    "--unsafe-no-fsync",
  ];
}

const AUDIT_LOG = "audit.log";

interface Place {
  readonly address: string;
  readonly port: number;
  readonly etcdEndpoint: string;
  readonly credentials: KubeCredentials;
  readonly plan: ApiServerPlan;
}

function apiServerFlags(directory: string, place: Place): readonly string[] {
  const { authority, server, admin, tokens, frontProxyAuthority, frontProxy } = place.credentials;
  const auditPolicy = join(directory, "audit-policy.json");
  writeFileSync(auditPolicy, AUDIT_POLICY);
  return [
    `--etcd-servers=${place.plan.etcdOfCluster ?? place.etcdEndpoint}`,
    `--bind-address=${place.address}`,
    `--advertise-address=${place.address}`,
    `--secure-port=${place.port}`,
    // Endpoints of the service "kubernetes" may not be on loopback: then there are none.
    ...(LOOPBACK.test(place.address) ? ["--endpoint-reconciler-type=none"] : []),
    "--kubelet-preferred-address-types=InternalIP",
    `--tls-cert-file=${server.cert}`,
    `--tls-private-key-file=${server.key}`,
    `--client-ca-file=${authority.cert}`,
    `--kubelet-client-certificate=${admin.cert}`,
    `--kubelet-client-key=${admin.key}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${tokens.cert}`,
    `--service-account-signing-key-file=${tokens.key}`,
    `--service-cluster-ip-range=${(place.plan.serviceCidrs ?? ["10.96.0.0/16"]).join(",")}`,
    `--requestheader-client-ca-file=${frontProxyAuthority.cert}`,
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-username-headers=X-Remote-User",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    `--proxy-client-cert-file=${frontProxy.cert}`,
    `--proxy-client-key-file=${frontProxy.key}`,
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    "--allow-privileged=true",
    `--audit-policy-file=${auditPolicy}`,
    `--audit-log-path=${join(directory, AUDIT_LOG)}`,
    ...(place.plan.apiServerFlags ?? []),
  ];
}

function controllerFlags(plan: ApiServerPlan, credentials: KubeCredentials) {
  const { authority, tokens } = credentials;
  const of = (user: "controller-manager" | "scheduler") => [
    `--kubeconfig=${credentials.kubeconfig(user)}`,
    "--leader-elect=false",
    // It serves nothing, so it needs no port.
    "--secure-port=0",
  ];
  return {
    "kube-controller-manager": [
      ...of("controller-manager"),
      "--use-service-account-credentials=true",
      `--service-account-private-key-file=${tokens.key}`,
      `--root-ca-file=${authority.cert}`,
      ...(plan.controllerManagerFlags ?? []),
    ],
    "kube-scheduler": of("scheduler"),
  } as const;
}

/** Throws unless the URL returns a status of success. */
async function curl(enter: readonly string[], args: readonly string[]): Promise<void> {
  const command = [...enter, "curl", "--silent", "--show-error", "--fail-with-body", "--max-time", "5", ...args];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [body, complaint] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const failed = body.split("\n").filter((line) => line.startsWith("[-]"));
  if ((await child.exited) !== 0) throw new Error([complaint.trim(), ...failed].join("\n"));
}
