/** Texts about fields, by their paths. */
export type Descriptions = Readonly<Record<string, string>>;
/** By kind; "" is the kind itself. */
export type KindDescriptions = Readonly<Record<string, Descriptions>>;

/** The fields of an object, below the path of the object. */
export function below(path: string, own: string, inner: Descriptions): Descriptions {
  const rows = Object.entries(inner).filter(([name]) => name !== "");
  return { [path]: own, ...Object.fromEntries(rows.map(([name, text]) => [`${path}.${name}`, text])) };
}
