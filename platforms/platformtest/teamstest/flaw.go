package teamstest

// Flaw is what is wrong with the token of a delivery to the bot. Every bot must refuse each but None.
type Flaw string

// The flaws.
const (
	None            Flaw = ""
	NoToken         Flaw = "no token"
	NotBearer       Flaw = "not a bearer token"
	Expired         Flaw = "expired"           // by ten minutes, more than any leeway
	NotYetValid     Flaw = "not yet valid"     // for ten minutes
	NoExpiry        Flaw = "no expiry"         // no exp claim
	WrongAudience   Flaw = "wrong audience"    // another bot's app id
	WrongIssuer     Flaw = "wrong issuer"      // https://sts.windows.net/{tenant}/
	WrongServiceURL Flaw = "wrong service url" // the claim names another server
	NoServiceURL    Flaw = "no service url"    // there is no such claim
	Unsigned        Flaw = "unsigned"          // alg none
	Symmetric       Flaw = "symmetric"         // HS256 with the public key's PEM as the secret
	BadSignature    Flaw = "bad signature"     // by a key that is not the kid's
	UnknownKey      Flaw = "unknown key"       // a kid that the key server has not
	NoKey           Flaw = "no key"            // no kid in the header
	Unendorsed      Flaw = "unendorsed"        // by a published key that is not endorsed for msteams
	RetiredKey      Flaw = "retired key"       // by a key that RotateKeys took off the list; before that, UnknownKey
	AlteredBody     Flaw = "altered body"      // a fine token for an activity whose serviceUrl is another server's
)

// Flaws are all of them but None.
func Flaws() []Flaw {
	return []Flaw{NoToken, NotBearer, Expired, NotYetValid, NoExpiry, WrongAudience, WrongIssuer, WrongServiceURL, NoServiceURL, Unsigned,
		Symmetric, BadSignature, UnknownKey, NoKey, Unendorsed, RetiredKey, AlteredBody}
}
