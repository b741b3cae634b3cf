package gateway

import (
	"herald/locales"
	"herald/platforms"
)

// texts says what the core tells people, in the profile's language.
type texts struct {
	g        *Gateway
	catalogs *locales.Catalogs
}

// printer speaks the profile's language and writes commands as they are typed at a place.
func (t *texts) printer(at platforms.Address) *locales.Printer {
	p := t.catalogs.Choose(t.g.cfg().Display.Language)
	if t.g.accounts == nil {
		return p
	}
	adapter, ok := t.g.accounts.Adapter(at.AccountOf())
	if !ok {
		return p
	}
	return p.Commands(adapter.Traits().PrefixIn(at))
}

func (t *texts) say(at platforms.Address, key string, args ...locales.Arg) string {
	return t.printer(at).T(key, args...)
}
