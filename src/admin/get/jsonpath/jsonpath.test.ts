import { describe, expect, test } from "bun:test";
import { parseLonePath, parseTemplate } from "./parse.ts";
import { printTemplate } from "./print.ts";
import { TemplateError } from "./template.ts";

const POOLS = {
  kind: "IPPoolList",
  items: [
    {
      metadata: { name: "blue", labels: { "a.b/c": "x" } },
      spec: { cidr: "10.0.0.0/24", blockSize: 26, allowedUses: ["Workload", "Tunnel"], disabled: false },
    },
    { metadata: { name: "red" }, spec: { cidr: "fd00::/64", blockSize: 122, disabled: true } },
  ],
};

describe("printTemplate()", () => {
  test.each([
    ["{.kind}", "IPPoolList"],
    ["{$.kind} and {@.kind}", "IPPoolList and IPPoolList"],
    ["{.items[*].metadata.name}", "blue red"],
    ["{.items..length}", TemplateError],
    ["{.items[0].metadata.name}", "blue"],
    ["{.items[-1].metadata.name}", "red"],
    ["{.items[0:1].metadata.name}", "blue"],
    ["{.items[1:].metadata.name}", "red"],
    ["{.items[0].spec.allowedUses}", '["Workload","Tunnel"]'],
    ["{.items[0].spec['cidr']}", "10.0.0.0/24"],
    ["{['kind']}", "IPPoolList"],
    ["{.items[0].metadata.labels.a\\.b/c}", "x"],
    ["{.items[0].metadata.labels['a.b/c']}", "x"],
    ["{.items[0].metadata.labels}", '{"a.b/c":"x"}'],
    ["{.items[0].spec.*}", '10.0.0.0/24 26 ["Workload","Tunnel"] false'],
    ["{.items[7].metadata.name}|{.nothing.here}|{.kind.deeper}", "||"],
    ["{.constructor}{.__proto__}", ""],
    ['{range .items[*]}{.metadata.name}{"\\t"}{.spec.cidr}{"\\n"}{end}', "blue\t10.0.0.0/24\nred\tfd00::/64\n"],
    ["{range .items[*]}{.metadata.name}:{range .spec.allowedUses[*]} {@}{end};{end}", "blue: Workload Tunnel;red:;"],
    ["{range .items[*]}{$.kind} {end}", "IPPoolList IPPoolList "],
    ['{.items[?(@.metadata.name=="red")].spec.cidr}', "fd00::/64"],
    ["{.items[?(@.metadata.name == 'red')].spec.cidr}", "fd00::/64"],
    ['{.items[?(@.metadata.name!="red")].spec.cidr}', "10.0.0.0/24"],
    ["{.items[?(@.spec.blockSize>26)].metadata.name}", "red"],
    ["{.items[?(@.spec.blockSize<=26)].metadata.name}", "blue"],
    ["{.items[?(@.spec.disabled==true)].metadata.name}", "red"],
    ["{.items[?(@.metadata.labels)].metadata.name}", "blue"],
    ['{.items[?(@.metadata.labels["a.b/c"]=="x")].metadata.name}', "blue"],
    ['{.items[?(@.metadata.name<"red")].metadata.name}', "blue"],
    ["name: {'it\\'s'} {.kind}{'.'}", "name: it's IPPoolList."],
    ['{.kind "=" .items[0].metadata.name}', "IPPoolList=blue"],
    ["{.}", JSON.stringify(POOLS)],
  ])("%s", (template, expected) => {
    if (typeof expected === "string") expect(printTemplate(parseTemplate(template), POOLS)).toBe(expected);
    else expect(() => parseTemplate(template)).toThrow(expected);
  });
});

describe("parseTemplate()", () => {
  test.each([
    [".metadata.name", "braces"],
    ["{..name}", "recursive descent"],
    ["{.items[0,1]}", "unions"],
    ["{.items['a','b']}", "unions"],
    ["{.items[0:4:2]}", "step"],
    ["{.items[?(@.name=~'a.*')]}", "regular expressions"],
    ["{.items[?(@.a==1 && @.b==2)]}", '"&&"'],
    ["{.items[?(@.a || @.b)]}", '"||"'],
    ["{.items[x]}", "an index"],
    ["{.items[0}", '"]"'],
    ["{.kind", '"}"'],
    ["{range .items[*]}{.kind}", '"{end}"'],
    ["{.kind}{end}", '"{range …}"'],
    ["{if .kind}", "a path"],
    ["{}", "a path"],
    ["{.items[?(1)]}", "=="],
  ])("refuses %p by name", (template, reason) => {
    expect(() => parseTemplate(template)).toThrow(reason);
  });
});

describe("parseLonePath()", () => {
  test.each([".metadata.name", "metadata.name", "{.metadata.name}", "$.metadata.name"])("accepts %p", (text) => {
    expect(parseLonePath(text).steps).toEqual([
      { kind: "field", name: "metadata" },
      { kind: "field", name: "name" },
    ]);
  });

  test("refuses text after the path", () => {
    expect(() => parseLonePath(".a b")).toThrow(TemplateError);
  });
});
