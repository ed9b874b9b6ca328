import { describe, expect, test } from "bun:test";
import { formerInjectorConfig } from "../../../test/support/former-injector.ts";
import { injectorConfig } from "../../../test/support/injector-config.ts";
import { insertSidecar } from "../mesh/insert-sidecar.ts";
import { MESH_MINORS } from "../mesh/mesh-minor.ts";
import { hasFormerSidecar, removeFormerSidecar } from "./remove-former.ts";

describe("removeFormerSidecar()", () => {
  test.each(MESH_MINORS)("leaves the template of mesh %s as it was before, with the edits of users", (minor) => {
    const config = formerInjectorConfig(minor);
    expect(hasFormerSidecar(config)).toBe(true);

    const without = removeFormerSidecar(config);
    expect(hasFormerSidecar(without)).toBe(false);
    expect(withoutBlankLines(without)).toBe(withoutBlankLines(injectorConfig(minor)));
    expect(without).toContain("# An edit of the users.");
    expect(insertSidecar(without, { minor, image: "vendor:v3.29.0" }).isChanged).toBe(true);
  });

  test("does not change a template without it", () => {
    const config = injectorConfig("1.15");

    expect(removeFormerSidecar(config)).toBe(config);
    expect(hasFormerSidecar(config)).toBe(false);
  });
});

function withoutBlankLines(text: string): string {
  return text.replaceAll(/\n+/g, "\n");
}
