/** How operations add to the gradients of parameters: in float32, whatever these are kept in. */
import { type GradientPlace, changeGradients, gradientPart } from "../memory/gradient-block.ts";
import type { Parameter } from "./tape.ts";

/** Elements that are written out in float32 at a time: 1 MiB, or rows enough for a fast product. */
const partElements = 2 ** 18;
const leastRows = 64;

/** Adds to the gradient of a parameter: `add` is given its place in float32. */
export function addTo(
  place: GradientPlace,
  { gradient }: Parameter,
  add: (pointer: number) => void,
): void {
  changeGradients(place, gradient, add);
}

/** The same for a matrix of rows of `width`, by parts where it is not in float32: `add` is given some rows. */
export function addToRows(
  place: GradientPlace,
  { gradient }: Parameter,
  width: number,
  add: (pointer: number, row: number, rows: number) => void,
): void {
  const all = gradient.size / width;
  const most = gradient.each === 4 ? all : Math.max(leastRows, Math.floor(partElements / width));
  for (let row = 0; row < all; row += most) {
    const rows = Math.min(most, all - row);
    const part = gradientPart(gradient, row * width, rows * width);
    changeGradients(place, part, (pointer) => add(pointer, row, rows));
  }
}
