import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { consoleSchema } from "../../../model/installation/console.ts";
import { flowsSchema } from "../../../model/installation/flows.ts";
import type { KubeObject } from "../../../release/kube-object.ts";
import { installationSchema, translateInstallation } from "../../operator-install/translate-installation.ts";
import { translateValues } from "./translate-values.ts";

const DEFINITION = join(import.meta.dir, "../../../../deploy/crds/operator/installations.yaml");
const SCHEMA = installationSchema([Bun.YAML.parse(readFileSync(DEFINITION, "utf8")) as KubeObject]);
const PLACE = { what: "Installation default:", root: "spec" };

/** As the operator of v3.26 completes it. */
const FORMER_SPEC = {
  variant: "Vendor",
  cni: { type: "Vendor", ipam: { type: "Vendor" } },
  vendorNetwork: {
    bgp: "Enabled",
    hostPorts: "Enabled",
    linuxDataplane: "Iptables",
    multiInterfaceMode: "None",
    windowsDataplane: "Disabled",
    linuxPolicySetupTimeoutSeconds: 0,
    nodeAddressAutodetectionV4: { firstFound: true },
    sysctl: [{ key: "net.ipv4.tcp_keepalive_intvl", value: "15" }],
    ipPools: [
      {
        cidr: "10.244.0.0/16",
        blockSize: 26,
        disableBGPExport: false,
        encapsulation: "VXLANCrossSubnet",
        natOutgoing: "Enabled",
        nodeSelector: "all()",
        assignmentMode: "Automatic",
      },
    ],
  },
  controlPlaneReplicas: 2,
  flexVolumePath: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
  kubeletVolumePluginPath: "/var/lib/kubelet",
  nodeUpdateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
  nonPrivileged: "Disabled",
  typhaMetricsPort: 9093,
  componentResources: [
    { componentName: "Typha", resourceRequirements: { requests: { cpu: "100m" } } },
    { componentName: "Node", resourceRequirements: { requests: { cpu: "200m" } } },
  ],
  vendorKubeControllersDeployment: {
    spec: {
      template: { spec: { containers: [{ name: "vendor-kube-controllers", resources: { limits: { cpu: "1" } } }] } },
    },
  },
};

describe("translateInstallation()", () => {
  test("keeps what has a meaning, renames what is called otherwise, and names everything that it drops", () => {
    const { spec, notes, obstacles } = translateInstallation(FORMER_SPEC, SCHEMA, PLACE);

    expect(obstacles).toEqual([]);
    const { sysctl: _, ...network } = FORMER_SPEC.vendorNetwork;
    const { assignmentMode: _mode, ...pool } = FORMER_SPEC.vendorNetwork.ipPools[0] ?? { assignmentMode: "" };
    const { flexVolumePath: _path, typhaMetricsPort: _port, ...others } = FORMER_SPEC;
    expect(spec).toEqual({
      ...others,
      vendorNetwork: { ...network, ipPools: [pool] },
      componentResources: [FORMER_SPEC.componentResources[1]],
      vendorKubeControllersDeployment: {
        spec: {
          template: { spec: { containers: [{ name: "vendor-controllers", resources: { limits: { cpu: "1" } } }] } },
        },
      },
    });
    expect(notes.map((note) => note.replace(/ is dropped: .*/, ""))).toEqual([
      "Installation default: spec.flexVolumePath",
      "Installation default: spec.typhaMetricsPort",
      "Installation default: spec.vendorNetwork.sysctl",
      "Installation default: spec.componentResources[0]",
      "Installation default: spec.vendorNetwork.ipPools[0].assignmentMode",
    ]);
  });

  test("keeps every setting of flows", () => {
    const flows = {
      ...{ mode: "Enabled", historyMegabytes: 50, historyAge: "48h", logFile: "/var/log/flows.json" },
      ...{ flowsPerSecond: 700, deniedPerSecond: 20 },
    };
    expect(Object.keys(flows).toSorted()).toEqual(Object.keys(flowsSchema.entries).toSorted());
    const { spec, obstacles } = translateInstallation({ ...FORMER_SPEC, flows }, SCHEMA, PLACE);
    expect([spec["flows"], obstacles]).toEqual([flows, []]);
  });

  test("keeps every setting of the console", () => {
    const console = {
      ...{ mode: "Enabled", hosts: ["console.example.org"] },
      alerts: { namespace: "monitoring", service: "prometheus", port: 9090 },
    };
    expect(Object.keys(console).toSorted()).toEqual(Object.keys(consoleSchema.entries).toSorted());
    const { spec, obstacles } = translateInstallation({ ...FORMER_SPEC, console }, SCHEMA, PLACE);
    expect([spec["console"], obstacles]).toEqual([console, []]);
  });

  test("is the same when it is done again", () => {
    const { spec } = translateInstallation(FORMER_SPEC, SCHEMA, PLACE);
    expect(translateInstallation(spec, SCHEMA, PLACE)).toEqual({ spec, notes: [], obstacles: [] });
  });

  test.each([
    [{ vendorNetwork: { linuxDataplane: "BPF" } }, 'spec.vendorNetwork.linuxDataplane: "BPF"'],
    [{ cni: { type: "AmazonVPC" } }, 'spec.cni.type: "AmazonVPC"'],
    [{ vendorNetwork: { windowsDataplane: "HNS" } }, 'spec.vendorNetwork.windowsDataplane: "HNS"'],
    [{ vendorNetwork: { multiInterfaceMode: "Multus" } }, 'spec.vendorNetwork.multiInterfaceMode: "Multus"'],
  ])("%j needs a decision", (spec, message) => {
    const { obstacles } = translateInstallation(spec, SCHEMA, PLACE);
    expect(obstacles.map((each) => each.message).join()).toContain(message);
  });
});

describe("translateValues()", () => {
  test("carries the user's values over, and names those that have no meaning any more", () => {
    const { values, notes, obstacles } = translateValues(
      {
        installation: {
          enabled: true,
          registry: "registry.example.org/",
          vendorNetwork: { mtu: 1430, ipPools: [{ cidr: "10.9.0.0/16" }] },
        },
        apiServer: { enabled: true },
        certs: { node: { key: "secret" } },
        resources: { limits: { cpu: "1" } },
        nodeSelector: { role: "infra" },
        imagePullSecrets: { registry: "{}" },
        kubeletVolumePluginPath: "None",
        vendorOperator: { registry: "quay.example.org", version: "v1.30.4" },
        podLabels: { a: "b" },
      },
      { schema: SCHEMA },
    );

    expect(obstacles).toEqual([]);
    expect(values).toEqual({
      imagePullSecrets: { registry: "{}" },
      installation: {
        enabled: true,
        kubeletVolumePluginPath: "None",
        registry: "registry.example.org/",
        vendorNetwork: { mtu: 1430, ipPools: [{ cidr: "10.9.0.0/16" }] },
      },
      operator: { resources: { limits: { cpu: "1" } }, nodeSelector: { role: "infra" } },
    });
    expect(notes.join("\n")).not.toContain("secret");
    expect(notes.map((note) => /^Value (\S+)/.exec(note)?.[1])).toEqual([
      "resources",
      "nodeSelector",
      "kubeletVolumePluginPath",
      "apiServer",
      "certs",
      "vendorOperator",
      "podLabels",
    ]);
  });

  test("leaves the values of this chart as they are", () => {
    const values = {
      installation: { vendorNetwork: { mtu: 1400 } },
      operator: { replicas: 2 },
      kubernetesServiceEndpoint: { host: "10.0.0.1" },
    };
    expect(translateValues(values, { schema: SCHEMA })).toEqual({ values, notes: [], obstacles: [] });
  });

  test("switch further sources of pods on if the former agents allowed them, unless they say otherwise", () => {
    const facts = { schema: SCHEMA, allowsSourceSpoofing: true };
    const on = { vendorNetwork: { featureControl: { allowedSourcePrefixes: true } } };
    expect(translateValues({}, facts).values).toEqual({ installation: on });
    const values = { installation: { vendorNetwork: { featureControl: { allowedSourcePrefixes: false } } } };
    expect(translateValues(values, facts).values).toEqual(values);
    const without = { installation: { enabled: false } };
    expect(translateValues(without, facts).values).toEqual(without);
  });
});
