/** Which tests `make test T=word` means: a file or folder, files with the word in their path, or else tests with it in their title. */
export interface ChosenTests {
  readonly files: readonly string[];
  /** A pattern of the titles that are meant; all tests of the files without one. */
  readonly title?: string;
}

export async function chooseTests(
  word: string,
  all: readonly string[],
  read: (file: string) => Promise<string> = (file) => Bun.file(file).text(),
): Promise<ChosenTests> {
  const path = word.replace(/^\.\//, "");
  const named = all.filter((file) => file === path || file.startsWith(`${path.replace(/\/$/, "")}/`));
  if (named.length > 0) return { files: named };
  const alike = all.filter((file) => file.includes(path));
  if (alike.length > 0) return { files: alike };
  const texts = await Promise.all(all.map(async (file) => ({ file, text: await read(file) })));
  const titled = texts.filter(({ text }) => text.includes(word)).map(({ file }) => file);
  return { files: titled, title: word.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&") };
}
