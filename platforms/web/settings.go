package web

import "herald/platforms"

// Settings is the block platforms.web, the browser chat. Its door is http.listen, http.password and http.token.
type Settings struct {
	platforms.Common
	Title string `yaml:"title" default:"Herald" check:"text" doc:"the page's title"`
}

// On reports whether the browser chat is served: yes, unless it is switched off.
func (s Settings) On() bool { return s.Starts(true) }
