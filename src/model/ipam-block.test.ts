import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { PluginError } from "../errors.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../ip/prefix.ts";
import { readAffinity, writeAffinity } from "./block-affinity.ts";
import { affineNode, hostAffinity, type IPAMBlock, readBlock, readBlockObject, writeBlock } from "./ipam-block.ts";
import { readHandle, writeHandle } from "./ipam-handle.ts";
import { quoteSequenceNumbers } from "./sequence-numbers.ts";

function prefix(text: string): Prefix {
  const read = parsePrefix(text);
  if (!read) throw new Error(`test needs a prefix, not ${text}`);
  return read;
}

/** As the reference shows it. */
const WIRE = `{"cidr":"10.0.0.0/30","affinity":"host:node1","allocations":[0,null,null,0],"unallocated":[1,2],
  "attributes":[{"handle_id":"net.cid","secondary":{"node":"node1","pod":"p","namespace":"ns"}}],
  "sequenceNumber":1723456789012345679,"sequenceNumberForAllocation":{"0":1723456789012345677, "3" : 1723456789012345678},"deleted":false}`;

const BLOCK: IPAMBlock = {
  cidr: prefix("10.0.0.0/30"),
  affinity: "host:node1",
  allocations: [0, undefined, undefined, 0],
  unallocated: [1, 2],
  attributes: [{ handleId: "net.cid", secondary: { node: "node1", pod: "p", namespace: "ns" } }],
  sequenceNumber: 1723456789012345679n,
  sequenceNumberForAllocation: { 0: 1723456789012345677n, 3: 1723456789012345678n },
  deleted: false,
};

function kindOf(attempt: () => unknown): string {
  try {
    attempt();
  } catch (error) {
    return error instanceof PluginError ? error.kind : `another error: ${error}`;
  }
  return "no error";
}

describe("readBlock()", () => {
  test("reads the stored format, with exact sequence numbers", () => {
    expect(readBlock(WIRE, "key")).toEqual(BLOCK);
  });

  test("treats null and absent as empty", () => {
    const text = `{"cidr":"10.0.0.0/31","affinity":null,"allocations":[null,null],"unallocated":null,"attributes":null}`;

    expect(readBlock(text, "key")).toEqual({
      cidr: prefix("10.0.0.0/31"),
      allocations: [undefined, undefined],
      unallocated: [],
      attributes: [],
      sequenceNumber: 0n,
      sequenceNumberForAllocation: {},
      deleted: false,
    });
  });

  test("reads the old field name of the affinity", () => {
    const text = `{"cidr":"10.0.0.0/32","hostAffinity":"node2","allocations":[null],"unallocated":[0],"attributes":[]}`;

    expect(affineNode(readBlock(text, "key"))).toBe("node2");
  });

  const broken: [string, string, string][] = [
    ["text that is no JSON", WIRE, ""],
    ["a number for a block", WIRE, "5"],
    ["no CIDR", '"cidr":"10.0.0.0/30"', '"cidr":"ten"'],
    ["a CIDR with host bits", '"cidr":"10.0.0.0/30"', '"cidr":"10.0.0.1/30"'],
    ["too few allocations", "[0,null,null,0]", "[0,null,null]"],
    ["an allocation without attribute", "[0,null,null,0]", "[0,null,null,1]"],
    ["an allocation that is text", "[0,null,null,0]", '[0,null,null,"0"]'],
    ["a free ordinal outside the block", "[1,2]", "[1,4]"],
    ["a fractional ordinal", "[1,2]", "[1,1.5]"],
    ["a number for a handle", '"net.cid"', "7"],
    ["a number for an attribute", '"pod":"p"', '"pod":1'],
    ["a number for an affinity", '"host:node1"', "1"],
    ["a word for an ordinal", '"0":1723', '"zero":1723'],
    ["a negative sequence number", "1723456789012345679", "-1"],
    ["a fractional sequence number", "1723456789012345677", "1.5"],
  ];
  test.each(broken)("refuses %s and reports the key", (_, part, replacement) => {
    const text = WIRE.replace(part, replacement);

    expect(text).not.toBe(WIRE);
    expect(kindOf(() => readBlock(text, "/the/key"))).toBe("record-malformed");
    expect(() => readBlock(text, "/the/key")).toThrow("/the/key");
  });

  test("refuses a rounded sequence number", () => {
    expect(kindOf(() => readBlockObject(JSON.parse(WIRE), "key"))).toBe("record-malformed");
  });
});

describe("writeBlock()", () => {
  test("writes what readBlock() reads, whatever the strings contain", () => {
    const texts = fc.oneof(
      fc.string(),
      fc.constantFrom('"sequenceNumber":12345678901234567890', '\\"sequenceNumberForAllocation":{"0":1}', "}{", '"'),
    );
    const attribute = fc.record({ handleId: texts, secondary: fc.dictionary(texts, texts, { maxKeys: 3 }) });
    const sequence = fc.bigInt(0n, (1n << 63n) - 1n);
    const sample = fc.record({
      attributes: fc.array(attribute, { minLength: 1, maxLength: 3 }),
      sequenceNumber: sequence,
      first: sequence,
    });
    fc.assert(
      fc.property(sample, ({ attributes, sequenceNumber, first }) => {
        const plain = attributes.map(({ handleId, secondary }) => ({ handleId, secondary: { ...secondary } }));
        const block = { ...BLOCK, attributes: plain, sequenceNumber, sequenceNumberForAllocation: { 0: first } };
        expect(readBlock(writeBlock(block), "key")).toEqual(block);
      }),
    );
  });

  test("writes plain numbers and the stored field names", () => {
    expect(JSON.parse(quoteSequenceNumbers(writeBlock(BLOCK)))).toEqual(JSON.parse(quoteSequenceNumbers(WIRE)));
    expect(writeBlock(BLOCK)).toContain('"sequenceNumber":1723456789012345679,');
  });

  test("writes null for a block without a node", () => {
    const { affinity: _, ...free } = BLOCK;

    expect(writeBlock(free)).toContain('"affinity":null');
  });
});

describe("affineNode()", () => {
  test("is the inverse of hostAffinity() and ignores other owners", () => {
    expect(affineNode({ affinity: hostAffinity("a:b") })).toBe("a:b");
    expect(affineNode({ affinity: "virtual:lb" })).toBeUndefined();
    expect(affineNode({})).toBeUndefined();
  });
});

describe("readAffinity()", () => {
  const owner = { node: "n", cidr: prefix("fd80::/122") };
  test.each([
    ["", "confirmed", false],
    ["{}", "confirmed", false],
    ['{"state":"","deleted":true}', "confirmed", true],
    ['{"state":"pending","deleted":false}', "pending", false],
    ['{"state":"pendingDeletion","deleted":"true"}', "pendingDeletion", true],
  ] as const)("reads %p as %s", (text, state, deleted) => {
    expect(readAffinity(text, "key", owner)).toEqual({ ...owner, state, deleted });
  });

  test.each(["x", "[]", '{"state":"confirmd"}', '{"state":1}'])("refuses %p", (text) => {
    expect(kindOf(() => readAffinity(text, "key", owner))).toBe("record-malformed");
  });

  test("reads what writeAffinity() writes", () => {
    const written = writeAffinity({ state: "pending", deleted: false });

    expect(written).toBe('{"state":"pending","deleted":false}');
    expect(readAffinity(written, "key", owner).state).toBe("pending");
  });
});

describe("readHandle()", () => {
  test("reads what writeHandle() writes", () => {
    const handle = { handleId: "net.cid", blocks: { [formatPrefix(BLOCK.cidr)]: 2 }, deleted: false };

    expect(writeHandle(handle)).toBe('{"block":{"10.0.0.0/30":2},"deleted":false}');
    expect(readHandle(writeHandle(handle), "key", "net.cid")).toEqual(handle);
  });

  test.each(["", "[]", '{"block":[]}', '{"block":{"a":"1"}}', '{"block":{"a":1.5}}'])("refuses %p", (text) => {
    expect(kindOf(() => readHandle(text, "key", "h"))).toBe("record-malformed");
  });
});
