package signal

import (
	"regexp"
	"strings"
)

var anyNumber = regexp.MustCompile(`\+[1-9][0-9]{6,14}\b`)

// Mask hides the middle of every phone number in a text: +15550004567 becomes +155****4567.
func Mask(text string) string {
	if strings.IndexByte(text, '+') < 0 {
		return text
	}
	return anyNumber.ReplaceAllStringFunc(text, func(n string) string { return n[:4] + "****" + n[len(n)-4:] })
}
