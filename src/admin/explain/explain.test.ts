import { describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { API_VERSION } from "../../identity.ts";
import { descriptionOf } from "../../release/crds/all-kinds.ts";
import { ADMIN_KINDS } from "../kinds/kinds.ts";
import { EXIT_OK, EXIT_USAGE } from "../main/command.ts";
import { type Field, fieldsOfKind } from "./schema-fields.ts";

function pathsOf(fields: readonly Field[], above = ""): readonly string[] {
  return fields.flatMap(({ name, fields: inner }) => {
    const path = above === "" ? name : `${above}.${name}`;
    return [path, ...pathsOf(inner, path)];
  });
}

describe("explain", () => {
  test.each(ADMIN_KINDS.map((kind) => [kind.kind, kind] as const))("describes every field of %s", (name, kind) => {
    const undescribed = ["", ...pathsOf(fieldsOfKind(kind))].filter((path) => descriptionOf(name, path) === undefined);

    expect(undescribed).toEqual([]);
  });

  test.each(["networkpolicy.spec.egress.http", "profile.spec.ingress.http.paths", "profile.spec.egress.http"])(
    "says that %s is refused",
    async (path) => {
      expect((await runInside(["explain", path])).stdout).toContain("Refused here");
      expect((await runInside(["explain", "networkpolicy.spec.ingress.http"])).stdout).not.toContain("Refused");
    },
  );

  test("shows a field with its type, allowed values and default", async () => {
    expect(await runInside(["explain", "pool.spec.ipipMode"])).toEqual({
      code: EXIT_OK,
      stdout: [
        "KIND:     IPPool",
        `VERSION:  ${API_VERSION}`,
        "",
        "FIELD:    spec.ipipMode <string>",
        "",
        "DESCRIPTION:",
        "  When packets to other nodes are encapsulated with IPIP; IPv4 only",
        "  Allowed values: Never, Always, CrossSubnet",
        '  Default: "Never"',
        "",
      ].join("\n"),
      stderr: "",
    });
  });

  test("shows the fields of a kind and of an object", async () => {
    expect((await runInside(["explain", "ippool"])).stdout).toContain("  metadata <Object> -required-\n");
    expect((await runInside(["explain", "ippool.spec"])).stdout).toContain("  cidr <string> -required-\n    Range");
    const { stdout } = await runInside(["explain", "profile.spec", "--recursive"]);
    expect(stdout).toContain("  ingress <[]Object>\n    action <string> -required-\n    ipVersion <integer>\n");
    expect(stdout).toContain("      ports <[]number or string>\n");
    expect(JSON.parse((await runInside(["explain", "node.metadata.labels", "-o", "json"])).stdout)).toMatchObject({
      field: { type: "map[string]string", isRequired: false },
    });
  });

  test.each([
    [["explain"], "kinds: ippool"],
    [["explain", "poool"], '"pool"'],
    [["explain", "ippool.spec.cdir"], 'IPPool.spec has no field "cdir"; did you mean "cidr"?'],
    [["explain", "ippool.spec.cidr.x"], 'IPPool.spec.cidr has no field "x"; it has no fields'],
    [["explain", "ippool.constructor"], '"constructor"'],
  ])("refuses %p", async (args, reason) => {
    const { code, stderr } = await runInside(args);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain(reason);
  });
});
