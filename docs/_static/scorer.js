/* The order of search results. Sphinx calls Scorer.score for each result, which it has found by whole titles, names of
 * objects or words of pages. Here a page becomes its heading with all words of the query, guides come first, and
 * measurements come last. */
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
  others: /^(api|from_|gallery|guides|index|coming|_modules)/,

  // The words of a text without endings, as in the index; short words such as "a" and "of" do not count.
  stems(text) {
    const stemmer = new Stemmer();
    const words = splitQuery(text.toLowerCase()).filter((word) => !stopwords.has(word));
    return new Set(words.map((word) => stemmer.stemWord(word)));
  },

  // The heading of a page with all words of the query, and the share of the query in the heading; the shortest counts.
  heading(docname, query) {
    const file = Search._index.docnames.indexOf(docname);
    let best = { share: 0 };
    for (const [title, places] of Object.entries(Search._index.alltitles)) {
      const place = places.find(([page]) => page === file);
      if (!place) continue;
      const words = Scorer.stems(title);
      const share = query.size / words.size;
      if ([...query].every((word) => words.has(word)) && share > best.share) best = { title, id: place[1], share };
    }
    return best;
  },

  score(result) {
    const [docname, title, , , score, , kind] = result;
    const text = new URLSearchParams(location.search).get("q") ?? "";
    const query = Scorer.stems(text);
    // A query that is the whole name of a function asks for the function.
    if (kind === "object") return title.toLowerCase().split(".").includes(text.trim().toLowerCase()) ? score : score - 20;
    const guide = Scorer.reports.test(docname) ? -40 : Scorer.others.test(docname) ? -20 : 0;
    if (query.size === 0) return score;
    const found = Scorer.heading(docname, query);
    if (!found.share) return score + guide;
    const page = Search._index.titles[Search._index.docnames.indexOf(docname)];
    result[1] = found.title === page ? page : `${page} > ${found.title}`;
    result[2] = found.id === null ? "" : `#${found.id}`;
    return 20 + 20 * found.share + guide;
  },
};
