package wire

import (
	"regexp"
	"slices"

	"github.com/rs/zerolog"
)

// WakeWords are the patterns by which people call the bot beside a mention.
type WakeWords []*regexp.Regexp

// NewWakeWords compiles patterns, which ignore case. A bad one is reported in the log and left out.
func NewWakeWords(patterns []string, log zerolog.Logger) WakeWords {
	var w WakeWords
	for _, pattern := range patterns {
		re, err := regexp.Compile("(?i)" + pattern)
		if err != nil {
			log.Warn().Str("key", "mention_patterns").Str("value", pattern).Err(err).Msg("bad mention pattern ignored")
			continue
		}
		w = append(w, re)
	}
	return w
}

// In reports whether a text holds one of the words.
func (w WakeWords) In(text string) bool {
	return slices.ContainsFunc(w, func(re *regexp.Regexp) bool { return re.MatchString(text) })
}
