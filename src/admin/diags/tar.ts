/** An archive of text files in the format of `tar` (ustar). Pure. */
export interface ArchivedFile {
  /** Relative, with "/" between its parts. */
  readonly path: string;
  readonly text: string;
}

const RECORD = 512;
const FIELD = {
  name: 0,
  mode: 100,
  uid: 108,
  gid: 116,
  size: 124,
  time: 136,
  checksum: 148,
  type: 156,
  magic: 257,
  prefix: 345,
} as const;
const LONGEST_NAME = 100;
const LONGEST_PREFIX = 155;

/** Files are readable by their owner only. `at`: the time of all files. */
export function tarOf(files: readonly ArchivedFile[], at: Date): Uint8Array {
  const parts = files.flatMap(({ path, text }) => {
    const content = new TextEncoder().encode(text);
    return [headerOf(path, content.length, at), content, new Uint8Array(padding(content.length))];
  });
  return Buffer.concat([...parts, new Uint8Array(2 * RECORD)]);
}

function padding(length: number): number {
  return (RECORD - (length % RECORD)) % RECORD;
}

function headerOf(path: string, size: number, at: Date): Uint8Array {
  const header = Buffer.alloc(RECORD);
  const { prefix, name } = splitPath(path);
  header.write(name, FIELD.name);
  header.write("0000600\0", FIELD.mode);
  header.write("0000000\0", FIELD.uid);
  header.write("0000000\0", FIELD.gid);
  header.write(`${octal(size, 11)}\0`, FIELD.size);
  header.write(`${octal(Math.floor(at.getTime() / 1000), 11)}\0`, FIELD.time);
  header.write(" ".repeat(8), FIELD.checksum);
  header.write("0", FIELD.type);
  header.write("ustar\u000000", FIELD.magic);
  header.write(prefix, FIELD.prefix);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, FIELD.checksum);
  return header;
}

function octal(number: number, digits: number): string {
  return number.toString(8).padStart(digits, "0");
}

/** A name that is too long even so is cut: its beginning says what it is. */
function splitPath(path: string): { readonly prefix: string; readonly name: string } {
  if (Buffer.byteLength(path) <= LONGEST_NAME) return { prefix: "", name: path };
  const slash = path.lastIndexOf("/");
  const [prefix, name] = [path.slice(0, Math.max(slash, 0)), path.slice(slash + 1)];
  return {
    prefix: Buffer.from(prefix).subarray(0, LONGEST_PREFIX).toString(),
    name: Buffer.from(name).subarray(0, LONGEST_NAME).toString(),
  };
}
