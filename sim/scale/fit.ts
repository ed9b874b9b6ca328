/** Lines through measured points, by least squares. Pure. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Line {
  readonly base: number;
  readonly slope: number;
}

export function fitLine(points: readonly Point[]): Line {
  if (points.length < 2) throw new Error("Cannot fit a line: it needs two points");
  const mean = (of: (point: Point) => number) => points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean((point) => point.x), mean((point) => point.y)];
  const spread = mean((point) => (point.x - x) ** 2);
  const slope = mean((point) => (point.x - x) * (point.y - y)) / spread;
  return { base: y - slope * x, slope };
}

export function valueAt({ base, slope }: Line, x: number): number {
  return base + slope * x;
}

/** `base + linear * x + square * x²`. */
export interface Growth {
  readonly base: number;
  readonly linear: number;
  readonly square: number;
}

/** A curve through the origin if the points rise faster than a line, otherwise a line. */
export function fitGrowth(points: readonly Point[]): Growth {
  const sum = (of: (point: Point) => number) => points.reduce((total, point) => total + of(point), 0);
  const [x2, x3, x4] = [2, 3, 4].map((power) => sum(({ x }) => x ** power));
  const [xy, x2y] = [sum(({ x, y }) => x * y), sum(({ x, y }) => x * x * y)];
  if (x2 === undefined || x3 === undefined || x4 === undefined) throw new Error("Cannot fit a curve");
  const determinant = x2 * x4 - x3 * x3;
  const linear = (xy * x4 - x2y * x3) / determinant;
  const square = (x2 * x2y - x3 * xy) / determinant;
  if (linear > 0 && square > 0) return { base: 0, linear, square };
  const { base, slope } = fitLine(points);
  return { base, linear: slope, square: 0 };
}

export function growthAt({ base, linear, square }: Growth, x: number): number {
  return base + linear * x + square * x * x;
}

/** The middle value, or the mean of the two in the middle. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = (sorted.length - 1) / 2;
  const [below, above] = [sorted[Math.floor(middle)], sorted[Math.ceil(middle)]];
  if (below === undefined || above === undefined) throw new Error("Cannot find the median of nothing");
  return (below + above) / 2;
}
