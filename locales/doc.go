// Package locales holds every text that Herald itself says to people, one catalog per language, and the
// Printer that fills it in. English is the source and complete; a text that another catalog lacks falls
// back to English, and a key that no catalog has is returned as it is.
//
// A catalog is a YAML file of flat dotted keys. {name} in a text is replaced by the argument of that name and
// {name:,} by a number with the language's own separators; {{ is a brace. A key with plural forms stands once
// per form that the language has, as key.one, key.other and so on (CLDR), with the count as {n}. To add a text, add its
// key to every catalog in catalogs/; the tests name what is missing. A catalog is parsed when its language is
// first used, never before.
//
// It knows nobody. What the agent says, logs, tool output and command descriptions are not translated.
package locales
