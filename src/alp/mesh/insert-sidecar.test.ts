import { describe, expect, test } from "bun:test";
import { injectorConfig } from "../../../test/support/injector-config.ts";
import { thrownBy } from "../../../test/support/thrown-by.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { formatYaml } from "../../yaml.ts";
import { insertSidecar, removeSidecar, sidecarImageIn } from "./insert-sidecar.ts";
import { MESH_MINORS, type MeshMinor, meshMinor, nearestMinorText, rowOf } from "./mesh-minor.ts";

const IMAGE = "registry.example.org/vendor:v2.0.0";
const OLDER = "registry.example.org/vendor:v1.9.0";

describe("insertSidecar()", () => {
  test.each(MESH_MINORS)(
    "inserts container, mounts and volumes, and adds the port to the excluded ones: mesh %s",
    (minor) => {
      const { config, isChanged } = insertSidecar(injectorConfig(minor), { minor, image: IMAGE });

      expect(isChanged).toBe(true);
      expect(sidecarImageIn(config)).toBe(IMAGE);
      expect(count(config, `driver: ${identity.csiDriver}`)).toBe(1);
      expect(count(config, `name: ${identity.sidecar}-authorization`)).toBe(3);
      const excluded = count(injectorConfig(minor), "`traffic.sidecar.istio.io/excludeInboundPorts`");
      expect(count(config, "(excludeInboundPort 9098 (annotation .ObjectMeta")).toBe(excluded);
    },
  );

  test.each(MESH_MINORS)("changes no other line: mesh %s", (minor) => {
    const before = injectorConfig(minor).trimEnd().split("\n");
    const after = insertSidecar(injectorConfig(minor), { minor, image: IMAGE }).config.trimEnd().split("\n");

    const isOurs = (line: string) => line.includes("excludeInboundPort") || line.startsWith("defaultTemplates:");
    const kept = before.filter((line) => !isOurs(line));
    let next = 0;
    for (const line of after) if (line === kept[next]) next += 1;
    expect(kept.slice(next)).toEqual([]);
  });

  test.each(MESH_MINORS)(
    "lets the filter of an earlier release ask the sidecar, as long as it is there: mesh %s",
    (minor) => {
      const earlierSocket = "/var/run/former/former.sock";
      const both = insertSidecar(injectorConfig(minor), { minor, image: IMAGE, earlierSocket }).config;
      const after = insertSidecar(both, { minor, image: IMAGE });

      expect(count(both, "--also-listen=/var/run/vendor/authorization/former.sock")).toBe(1);
      expect(count(both, "mountPath: /var/run/former\n")).toBe(1);
      expect(after.config).toBe(insertSidecar(injectorConfig(minor), { minor, image: IMAGE }).config);
    },
  );

  test.each(MESH_MINORS)("changes nothing at the second time: mesh %s", (minor) => {
    const first = insertSidecar(injectorConfig(minor), { minor, image: IMAGE });
    const second = insertSidecar(first.config, { minor, image: IMAGE });

    expect(second).toEqual({ config: first.config, isChanged: false });
  });

  test.each(MESH_MINORS)("replaces the sidecar of another release, and keeps edits made since: mesh %s", (minor) => {
    const edited = (text: string) => text.replaceAll("/data", "/other").replace("policy: enabled", "policy: disabled");
    const older = insertSidecar(injectorConfig(minor), { minor, image: OLDER });
    const newer = insertSidecar(edited(older.config), { minor, image: IMAGE });

    expect(sidecarImageIn(newer.config)).toBe(IMAGE);
    expect(newer.config).toBe(insertSidecar(edited(injectorConfig(minor)), { minor, image: IMAGE }).config);
  });

  test.each(MESH_MINORS)("accepts a configuration that is written in another style: mesh %s", (minor) => {
    const value = Bun.YAML.parse(injectorConfig(minor));
    const inserted = [JSON.stringify(value), formatYaml(value), injectorConfig(minor)].map(
      (text) => insertSidecar(text, { minor, image: IMAGE }).config,
    );

    for (const config of inserted) expect(parsed(config)).toEqual(parsed(inserted[0] ?? ""));
  });

  const LISTS = [
    ["in block style", "defaultTemplates:\n- sidecar\n- other", "[sidecar, other, vendor-sidecar]"],
    ["with nothing in it", "defaultTemplates: []", "[sidecar, vendor-sidecar]"],
    ["that is absent", "# none", "[sidecar, vendor-sidecar]"],
    [
      "that names ours already",
      "defaultTemplates: [sidecar, vendor-sidecar, other]",
      "[sidecar, vendor-sidecar, other]",
    ],
  ] as const;
  test.each(LISTS)("adds our template to a list of default templates %s", (_, list, expected) => {
    const config = injectorConfig("1.15").replace("defaultTemplates: [sidecar]", list);

    expect(insertSidecar(config, { minor: "1.15", image: IMAGE }).config).toContain(`defaultTemplates: ${expected}\n`);
  });

  const OLD = injectorConfig("1.6");
  const NEW = injectorConfig("1.15");
  const BEGIN = `# ${identity.sidecar}: begin`;
  const REFUSED: readonly (readonly [string, MeshMinor, string, string])[] = [
    [
      "the sidecar of another product",
      "1.6",
      OLD.replace("- name: istio-proxy", "- name: dikastes\n    image: x\n  - name: istio-proxy"),
      '"dikastes"',
    ],
    [
      "the image of another product",
      "1.15",
      NEW.replace("image: auto", "image: quay.io/calico/dikastes:v3"),
      '"dikastes"',
    ],
    ["no containers", "1.6", OLD.replace("containers:\n", "others:\n"), '"containers:"'],
    ["no proxy", "1.6", OLD.replace("istio-proxy", "proxy"), '"istio-proxy"'],
    ["no mounts of the proxy", "1.7", OLD.replace("volumeMounts:", "mounts:"), '"volumeMounts:"'],
    ["no volumes", "1.7", OLD.replace("  volumes:\n", "  disks:\n"), '"volumes:"'],
    [
      "a proxy that can be an init container",
      "1.15",
      NEW.replace("image: auto", "{{- if $nativeSidecar }}\n      image: auto\n      {{- end }}"),
      "native sidecar",
    ],
    ["no excluded ports", "1.9", NEW.replaceAll("traffic.sidecar", "sidecar"), "excludeInboundPorts"],
    ["one template, in a mesh with several", "1.9", OLD, '"templates.sidecar"'],
    ["several templates, in a mesh with one", "1.7", NEW, "mesh 1.9 and newer"],
    ["no template", "1.6", "policy: enabled\n", '"template"'],
    [
      "a container of ours without marks",
      "1.6",
      OLD.replace("- name: istio-proxy", `- name: ${identity.sidecar}\n  - name: istio-proxy`),
      "by hand",
    ],
    ["marks that do not end", "1.6", OLD.replace("  volumes:\n", `  ${BEGIN}\n  volumes:\n`), "by hand"],
    ["text that is not YAML", "1.6", "a: [", "not YAML"],
    ["a list", "1.6", "- a\n", "not a YAML object"],
  ];
  test.each(REFUSED)("refuses %s (mesh %s)", (_, minor, config, reason) => {
    const failure = thrownBy(() => insertSidecar(config, { minor, image: IMAGE }));

    expect(failure).toBeInstanceOf(PluginError);
    expect(String(failure)).toContain(reason);
  });
});

describe("removeSidecar()", () => {
  test.each(MESH_MINORS)("restores the text that the sidecar was inserted into: mesh %s", (minor) => {
    const original = `${injectorConfig(minor).trimEnd()}\n`;
    const { config } = insertSidecar(original, { minor, image: IMAGE });

    expect(config).not.toBe(original);
    expect(removeSidecar(config)).toBe(original);
    expect(removeSidecar(original)).toBe(original);
  });

  test("keeps other default templates", () => {
    const original = injectorConfig("1.15").replace(
      "defaultTemplates: [sidecar]",
      "defaultTemplates: [sidecar, other]",
    );

    expect(removeSidecar(insertSidecar(original, { minor: "1.15", image: IMAGE }).config)).toBe(`${original}\n`);
  });
});

describe("meshMinor()", () => {
  test.each([
    ["1.15", "1.15"],
    ["1.15.3", "1.15"],
    ["v1.10.0", "1.10"],
    ["1.9.5-distroless", "1.9"],
    ["1.6-alpha.3", "1.6"],
    ["1.8.2", "1.7"],
    ["1.14.6", "1.10"],
    ["1.18.0", "1.15"],
    ["2.0.0", "1.15"],
  ] as const)("finds the minor of %s, or the nearest earlier one", (version, minor) => {
    expect(meshMinor(version)).toBe(minor);
  });

  test("refuses what is earlier than all templates, and names the first", () => {
    expect(String(thrownBy(() => meshMinor("1.5.10")))).toContain(
      '"1.5.10": 1.5 has no template; the first one is for 1.6',
    );
  });

  test("says which template takes the place of a missing one", () => {
    expect(nearestMinorText("1.16.1")).toBe("mesh 1.16.1 has no template of its own: that of 1.15 is used");
    expect(nearestMinorText("v1.15.3")).toBeUndefined();
  });

  test.each(["", "latest", "1", "1.15x", "1.15.x", "1.15.", "1.15 ", "toString", "1.1"])("refuses %j", (version) => {
    expect(thrownBy(() => meshMinor(version))).toBeInstanceOf(PluginError);
  });
});

/** With the text of each template as an object, where it can be read: expressions are quoted first. */
function parsed(config: string): unknown {
  return Bun.YAML.parse(config);
}

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}

test("each minor has the form of its injector", () => {
  expect(MESH_MINORS.map((minor) => `${minor} ${rowOf(minor).templates} ${rowOf(minor).filter}`)).toEqual([
    "1.6 one v2",
    "1.7 one v3-first",
    "1.9 several v3",
    "1.10 several v3",
    "1.15 several v3",
  ]);
});
