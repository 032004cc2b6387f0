/* The order of search results. Sphinx calls Scorer.score for each page or object that has all words of the query. Here
 * headings with at least half of the words are found too, guides come first, and measurements come last. */
"use strict";

// The summaries of results are fetched, which browsers refuse for files.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,

  // Reports of measurements, pages about single papers, and pages for contributors
  reports: new RegExp(
    "_figures$|^(sdf_|pcts|asyts|riegler|cnn|contextual|bpe|replays|compared|defaults|prices|robustness|architecture|" +
      "benchmarks|store_file)"
  ),
  others: /^(api|from_|gallery|guides|index|coming|changes|_modules)/,

  guide: (docname) => (Scorer.reports.test(docname) ? -40 : Scorer.others.test(docname) ? -20 : 0),

  // The words of a text without endings, as in the index; short words such as "a" and "of" do not count.
  stems(text) {
    const stemmer = new Stemmer();
    const words = splitQuery(text.toLowerCase()).filter((word) => !stopwords.has(word));
    return new Set(words.map((word) => stemmer.stemWord(word)));
  },

  score(result) {
    const [docname, title, , , score, , kind] = result;
    if (kind !== "object") return score + Scorer.guide(docname);
    // A query that is the whole name of a function asks for the function.
    const text = (new URLSearchParams(location.search).get("q") ?? "").trim().toLowerCase();
    return title.toLowerCase().split(".").includes(text) ? score : score - 20;
  },

  // For each page, the result for its best heading. The score is the share of the query's words that the heading has,
  // plus the share of the heading's words that the query has.
  headings(query) {
    const { alltitles, docnames, filenames, titles } = Search._index;
    const best = new Map();
    for (const [title, places] of Object.entries(alltitles)) {
      const words = Scorer.stems(title);
      const n = [...query].filter((word) => words.has(word)).length;
      if (n === 0 || 2 * n < query.size) continue;
      for (const [file, id] of places) {
        const score = (20 * n) / query.size + (20 * n) / words.size + Scorer.guide(docnames[file]);
        if (score <= (best.get(file)?.[4] ?? -Infinity)) continue;
        const name = title === titles[file] ? title : `${titles[file]} > ${title}`;
        best.set(file, [docnames[file], name, id === null ? "" : `#${id}`, null, score, filenames[file], "title"]);
      }
    }
    return [...best.values()];
  },
};

// Sphinx puts this file at the beginning of a script that defines Search. The index is loaded after this script.
queueMicrotask(() => {
  const pages = Search._performSearch;
  Search._performSearch = (text, ...terms) => {
    const found = Scorer.headings(Scorer.stems(text));
    const known = new Set(found.map(([docname]) => docname));
    // The result for a heading replaces the result for its page. Sphinx shows the last result first.
    const others = pages(text, ...terms).filter((result) => result[6] === "object" || !known.has(result[0]));
    return [...others, ...found].sort((a, b) => a[4] - b[4]);
  };
});
