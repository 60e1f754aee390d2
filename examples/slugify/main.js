/**
 * Turn a title into the last part of a web address.
 * @param {object} args
 * @param {string} args.title - The title, in any language that has Latin letters
 * @param {number} [args.longest] - The most characters
 */
export default function main({ title, longest = 60 }) {
  const plain = title.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const slug = plain.replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  return slug.slice(0, longest).replace(/-$/, "");
}
