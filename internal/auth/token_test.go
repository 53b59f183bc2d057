package auth

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

const parent = "7e4a2c10-90ab-4cde-8f01-23456789abcd"

// recorded is a token that a client library made: HS256, {"searchRules": ["*"], "apiKeyUid": parent}.
const recorded = "eyJ0eXAiOiAiSldUIiwgImFsZyI6ICJIUzI1NiJ9.eyJzZWFyY2hSdWxlcyI6IFsiKiJdLCAiYXBpS2V5VWlkIjogIjdlNGEyYzEwLTkwYWItNGNkZS04ZjAxLTIzNDU2Nzg5YWJjZCJ9." +
	"FONTvRosxtK30lzQWqPMlEQ-p5yWApEDwmj46RpMoYw"

// sign returns a token of JSON texts, signed by method with the value of the parent key.
func sign(t testing.TB, method jwt.SigningMethod, header, claims string) string {
	t.Helper()
	v := derive(master, uuid.MustParse(parent))
	return signWith(t, method, header, claims, []byte(v.text()))
}

func signWith(t testing.TB, method jwt.SigningMethod, header, claims string, secret any) string {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	signature, err := method.Sign(text, secret)
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

const hs256 = `{"alg":"HS256","typ":"JWT"}`

func TestTokens(t *testing.T) {
	k, c := newStore(t)
	create(t, k, parent, []string{"search"}, []string{"toys*", "tools"})
	now := c.at.Unix()
	claims := func(rest string) string { return `{"apiKeyUid":"` + parent + `"` + rest + `}` }
	token := func(rest string) string { return sign(t, jwt.SigningMethodHS256, hs256, claims(rest)) }
	all := `,"searchRules":["*"]`
	master := derive(master, uuid.MustParse(parent))
	parts := strings.Split(recorded, ".")

	for name, tt := range map[string]struct {
		token string
		opens bool // whether it may search toys
	}{
		"recorded":                  {recorded, true},
		"HS256":                     {token(all), true},
		"HS384":                     {sign(t, jwt.SigningMethodHS384, `{"alg":"HS384"}`, claims(all)), true},
		"HS512":                     {sign(t, jwt.SigningMethodHS512, `{"alg":"HS512"}`, claims(all)), true},
		"none":                      {signWith(t, jwt.SigningMethodNone, `{"alg":"none"}`, claims(all), jwt.UnsafeAllowNoneSignatureType), false},
		"none, with a signature":    {sign(t, jwt.SigningMethodHS256, `{"alg":"none"}`, claims(all)), false},
		"None":                      {sign(t, jwt.SigningMethodHS256, `{"alg":"None"}`, claims(all)), false},
		"RS256":                     {sign(t, jwt.SigningMethodHS256, `{"alg":"RS256"}`, claims(all)), false},
		"hs256 in lower case":       {sign(t, jwt.SigningMethodHS256, `{"alg":"hs256"}`, claims(all)), false},
		"another method than named": {sign(t, jwt.SigningMethodHS256, `{"alg":"HS384"}`, claims(all)), false},
		"no algorithm":              {sign(t, jwt.SigningMethodHS256, `{"typ":"JWT"}`, claims(all)), false},
		"header with more":          {sign(t, jwt.SigningMethodHS256, `{"alg":"HS256","kid":"x","typ":"other"}`, claims(all)), true},
		"header no object":          {sign(t, jwt.SigningMethodHS256, `["HS256"]`, claims(all)), false},

		"signature cut":                 {recorded[:len(recorded)-2], false},
		"signature longer":              {recorded + "x", false},
		"signature in other bits":       {recorded[:len(recorded)-1] + "x", false}, // decodes to the same bytes, unless strictly
		"no signature":                  {parts[0] + "." + parts[1] + ".", false},
		"two parts":                     {parts[0] + "." + parts[1], false},
		"four parts":                    {recorded + ".", false},
		"other claims":                  {parts[0] + "." + strings.Split(token(`,"searchRules":["x"]`), ".")[1] + "." + parts[2], false},
		"dots":                          {"..", false},
		"signed with the master key":    {signWith(t, jwt.SigningMethodHS256, hs256, claims(all), []byte("a-master-key-of-16+bytes")), false},
		"signed with the uid":           {signWith(t, jwt.SigningMethodHS256, hs256, claims(all), []byte(parent)), false},
		"signed with the value's bytes": {signWith(t, jwt.SigningMethodHS256, hs256, claims(all), master[:]), false},
		"signed with nothing":           {signWith(t, jwt.SigningMethodHS256, hs256, claims(all), []byte{}), false},

		"no rules":            {token(""), false},
		"rules null":          {token(`,"searchRules":null`), false},
		"rules a text":        {token(`,"searchRules":"*"`), false},
		"rules a number":      {token(`,"searchRules":1`), false},
		"rules of numbers":    {token(`,"searchRules":[1]`), false},
		"rules with null":     {token(`,"searchRules":[null]`), false},
		"rule a text":         {token(`,"searchRules":{"toys":"owner = ann"}`), false},
		"rule an array":       {token(`,"searchRules":{"toys":[]}`), false},
		"other rule a text":   {token(`,"searchRules":{"toys":null,"x":"y"}`), false},
		"empty array":         {token(`,"searchRules":[]`), false},
		"empty object":        {token(`,"searchRules":{}`), false},
		"names in upper case": {sign(t, jwt.SigningMethodHS256, hs256, `{"APIKEYUID":"`+parent+`","searchrules":["*"]}`), false},
		"null opens":          {token(`,"searchRules":{"toys":null}`), true},
		"object opens":        {token(`,"searchRules":{"toys":{}}`), true},
		"prefix opens":        {token(`,"searchRules":["other","to*"]`), true},
		"other index":         {token(`,"searchRules":["other"]`), false},
		"malformed pattern":   {token(`,"searchRules":["t*ys","two words"]`), false},
		"no uid":              {sign(t, jwt.SigningMethodHS256, hs256, `{"searchRules":["*"]}`), false},
		"uid null":            {sign(t, jwt.SigningMethodHS256, hs256, `{"searchRules":["*"],"apiKeyUid":null}`), false},
		"uid no UUID":         {sign(t, jwt.SigningMethodHS256, hs256, `{"searchRules":["*"],"apiKeyUid":"no-uuid"}`), false},
		"uid in upper case":   {sign(t, jwt.SigningMethodHS256, hs256, `{"searchRules":["*"],"apiKeyUid":"`+strings.ToUpper(parent)+`"}`), true},
		"another key's":       {sign(t, jwt.SigningMethodHS256, hs256, `{"searchRules":["*"],"apiKeyUid":"`+someUID+`"}`), false},
		"claims in an array":  {sign(t, jwt.SigningMethodHS256, hs256, `[`+claims(all)+`]`), false},
		"claims null":         {sign(t, jwt.SigningMethodHS256, hs256, `null`), false},
		"claims no JSON":      {sign(t, jwt.SigningMethodHS256, hs256, `{`), false},
		"free claims":         {token(all + `,"sub":"x","aud":null,"iss":"z","nbf":null,"iat":4102444800,"apiKeyPrefix":"1"`), true},
		"with an audience":    {token(all + `,"aud":"y"`), false},
		"with audiences":      {token(all + `,"aud":["y","z"]`), false},

		"critical extension":         {sign(t, jwt.SigningMethodHS256, `{"alg":"HS256","crit":["exp"]}`, claims(all)), false},
		"critical extensions, none":  {sign(t, jwt.SigningMethodHS256, `{"alg":"HS256","crit":[]}`, claims(all)), false},
		"critical extensions, null":  {sign(t, jwt.SigningMethodHS256, `{"alg":"HS256","crit":null}`, claims(all)), false},
		"unknown member":             {token(`,"searchRules":{"toys":{"filter":"a = b","other":1}}`), false},
		"misspelt member":            {token(`,"searchRules":{"toys":{"Filter":"a = b"}}`), false},
		"misspelt in another rule":   {token(`,"searchRules":{"toys":null,"x":{"filters":"a = b"}}`), false},
		"filter null":                {token(`,"searchRules":{"toys":{"filter":null}}`), true},
		"filter":                     {token(`,"searchRules":{"toys":{"filter":[["a = b","c = d"],"e = f"]}}`), true},
		"filter empty":               {token(`,"searchRules":{"toys":{"filter":""}}`), false},
		"filter blank":               {token(`,"searchRules":{"toys":{"filter":" \n"}}`), false},
		"filter an empty array":      {token(`,"searchRules":{"toys":{"filter":[]}}`), false},
		"filter with an empty array": {token(`,"searchRules":{"toys":{"filter":["a = b",[]]}}`), false},
		"filter with an empty part":  {token(`,"searchRules":{"toys":{"filter":[["a = b",""]]}}`), false},

		"valid later":     {token(all + `,"nbf":4102444800`), false},
		"valid from now":  {token(all + `,"nbf":` + jsonText(now)), true},
		"valid in 1 s":    {token(all + `,"nbf":` + jsonText(now+1)), false},
		"nbf a text":      {token(all + `,"nbf":"1"`), false},
		"nbf a fraction":  {token(all + `,"nbf":1.5`), false},
		"ends later":      {token(all + `,"exp":4102444800`), true},
		"ends now":        {token(all + `,"exp":` + jsonText(now)), true},
		"ended":           {token(all + `,"exp":` + jsonText(now-1)), false},
		"exp 0":           {token(all + `,"exp":0`), false},
		"exp negative":    {token(all + `,"exp":-1`), false},
		"exp null":        {token(all + `,"exp":null`), true},
		"exp a text":      {token(all + `,"exp":"4102444800"`), false},
		"exp a fraction":  {token(all + `,"exp":4102444800.5`), false},
		"exp too large":   {token(all + `,"exp":99999999999999999999`), false},
		"exp true":        {token(all + `,"exp":true`), false},
		"exp an exponent": {token(all + `,"exp":1e12`), false},
	} {
		_, err := k.Authorize(tt.token, "search", "toys")
		if (err == nil) != tt.opens || err != nil && codeOf(err) != "invalid_api_key" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := k.Authorize(tt.token, "documents.get", "toys"); err == nil {
			t.Errorf("%s: the token may read documents", name)
		}
	}
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestTokensLiveWithTheirKey checks how the state of a key affects its tokens.
func TestTokensLiveWithTheirKey(t *testing.T) {
	k, c := newStore(t)
	opens := func(want bool, action, index string) {
		t.Helper()
		if _, err := k.Authorize(recorded, action, index); (err == nil) != want {
			t.Errorf("%s in %q: %v", action, index, err)
		}
	}
	replace := func(key Key) {
		t.Helper()
		_ = k.Delete(parent) // does not exist at first
		key.UID = uuid.MustParse(parent)
		if _, err := k.Create(key); err != nil {
			t.Fatal(err)
		}
	}
	opens(false, "search", "toys")
	replace(Key{Actions: []string{"search"}, Indexes: []string{"toys"}})
	opens(true, "search", "toys")
	opens(true, "search", "") // many indexes, checked one by one
	opens(false, "search", "tools")
	opens(false, "chatCompletions", "")
	replace(Key{Actions: []string{"*"}, Indexes: []string{"*"}})
	opens(true, "search", "tools")
	opens(false, "chatCompletions", "")
	replace(Key{Actions: []string{"*", "chatCompletions"}, Indexes: []string{"*"}})
	opens(true, "chatCompletions", "")
	caller, err := k.Authorize(recorded, "search", "tools")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range actions {
		want := a.name == "search" || a.name == "chatCompletions"
		opens(want, a.name, "tools")
		if caller.May(a.name, "tools") != want { // as handlers ask that need a second right
			t.Errorf("%s: may %t, want %t", a.name, !want, want)
		}
	}
	replace(Key{Actions: []string{"documents.get"}, Indexes: []string{"*"}})
	opens(false, "search", "toys")
	replace(Key{Actions: []string{"search"}, Indexes: []string{}})
	opens(false, "search", "")
	replace(Key{Actions: []string{"search"}, Indexes: []string{"*"}, ExpiresAt: c.at.Add(time.Second)})
	opens(true, "search", "toys")
	c.at = c.at.Add(time.Second)
	opens(false, "search", "toys")
	if err := k.Delete(parent); err != nil {
		t.Fatal(err)
	}
	opens(false, "search", "toys")
}

// TestChatsNeedAnExplicitAction refuses keys with all rights for chats, unless they name the action.
func TestChatsNeedAnExplicitAction(t *testing.T) {
	k, _ := newStore(t)
	for _, tt := range []struct {
		actions []string
		opens   bool
	}{
		{[]string{"chatCompletions"}, true}, {[]string{"chatCompletions", "search"}, true}, {[]string{"*", "chatCompletions"}, true},
		{[]string{"*"}, false}, {[]string{"*.get"}, false}, {[]string{"search"}, false}, {[]string{"chats.*", "chatsSettings.*"}, false},
	} {
		key, err := k.Create(Key{UID: uuid.New(), Actions: tt.actions, Indexes: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Authorize(k.Value(key), "chatCompletions", ""); (err == nil) != tt.opens || err != nil && codeOf(err) != "invalid_api_key" {
			t.Errorf("%q: %v", tt.actions, err)
		}
	}
	for _, action := range []string{"chatCompletions", "chats.get"} {
		if _, err := k.Authorize(k.master, action, ""); err != nil {
			t.Errorf("the master key, %s: %v", action, err)
		}
	}
}

// TestMostSpecificRule compares the choice of a rule with the documented definition, on random patterns.
func TestMostSpecificRule(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	word := func() string {
		b := make([]byte, 1+r.IntN(3))
		for i := range b {
			b[i] = "ab"[r.IntN(2)]
		}
		return string(b)
	}
	for range 5000 {
		rules := map[string]any{}
		for range r.IntN(6) {
			pattern := word()
			if n := r.IntN(4); n > 1 {
				pattern = (pattern + "*")[r.IntN(len(pattern)+1):] // down to "*"
			}
			rules[pattern] = map[string]any{"filter": pattern}
		}
		parsed, err := parseRules(rules)
		if err != nil {
			t.Fatal(err)
		}
		uid := word()
		want := ""
		if rules[uid] != nil {
			want = uid
		} else {
			for n := len(uid); n >= 0 && want == ""; n-- {
				if rules[uid[:n]+"*"] != nil {
					want = uid[:n] + "*"
				}
			}
		}
		got := ""
		tok := token{rules: parsed}
		if rule := tok.ruleFor(uid); rule != nil {
			got = rule.pattern
		}
		if got != want {
			t.Fatalf("of %v, %s gets %q, want %q", rules, uid, got, want)
		}
	}
}

func TestFilters(t *testing.T) {
	k, _ := newStore(t)
	create(t, k, parent, []string{"search"}, []string{"a", "b", "c", "d", "e*"})
	text := sign(t, jwt.SigningMethodHS256, hs256, `{"apiKeyUid":"`+parent+`","searchRules":{"a":null,"b":{"filter":null},"c":{"filter":"x < 1"},"d":{"filter":[["p","q"],"r"]},"e1":{},"z":null}}`)
	c, err := k.Authorize(text, "search", "")
	if err != nil {
		t.Fatal(err)
	}
	for index, want := range map[string]struct {
		reaches, sees bool
		filter        string // decoded and encoded
	}{
		"a": {true, true, ""}, "b": {true, true, ""}, "c": {true, false, `"x \u003c 1"`}, "d": {true, false, `[["p","q"],"r"]`},
		"e1": {true, true, ""}, "e2": {false, false, ""}, "z": {false, false, ""},
	} {
		if got := c.Reaches(index); got != want.reaches {
			t.Errorf("%s: reached %t", index, got)
		}
		if got := c.Sees(index); got != want.sees {
			t.Errorf("%s: visible %t", index, got)
		}
		if got := string(c.Filter(index)); got != want.filter {
			t.Errorf("%s: filter %s", index, got)
		}
	}
}

func TestLimits(t *testing.T) {
	k, _ := newStore(t)
	for uid, tt := range map[string]struct {
		indexes []string
		limited bool
	}{
		"00000001-0000-4000-8000-000000000000": {[]string{"a", "*"}, false},
		"00000002-0000-4000-8000-000000000000": {[]string{"a*"}, true},
	} {
		key := create(t, k, uid, []string{"tasks.*"}, tt.indexes)
		c, err := k.Authorize(k.Value(key), "tasks.get", "")
		if err != nil {
			t.Fatal(err)
		}
		if limit := c.Limit(); (limit != nil) != tt.limited || limit != nil && (!limit("ab") || limit("b")) {
			t.Errorf("%v: limited %t", tt.indexes, limit != nil)
		}
		if !c.May("tasks.get", "ab") || c.May("tasks.get", "b") == tt.limited || c.May("search", "ab") {
			t.Errorf("%v: wrong rights", tt.indexes)
		}
	}
	c, err := k.Authorize(master, "keys.create", "x")
	if err != nil || c != nil || !c.Reaches("x") || !c.May("search", "x") || c.Limit() != nil || c.Filter("x") != nil {
		t.Errorf("the master key: %v, %v", c, err)
	}
	for _, credential := range []string{"", "x", master + "x", master[1:], " " + master} {
		if _, err := k.Authorize(credential, "version", ""); codeOf(err) != "invalid_api_key" {
			t.Errorf("%q: %v", credential, err)
		}
	}
}

func TestCovers(t *testing.T) {
	k, _ := newStore(t)
	key := create(t, k, "00000001-0000-4000-8000-000000000000", []string{"search"}, []string{"a*", "b", "c-*"})
	c, err := k.Authorize(k.Value(key), "search", "")
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]bool{
		"a": true, "ab": true, "a*": true, "ab*": true, "b": true, "b*": false, "c": false, "c*": false, "c-*": true, "*": false, "d": false, "": false,
	} {
		if got := c.Covers(pattern); got != want {
			t.Errorf("%q is covered: %t", pattern, got)
		}
		if all := (*Caller)(nil); !all.Covers(pattern) {
			t.Errorf("%q is not covered by the master key", pattern)
		}
	}
}

// TestHolds compares Holds for pairs of keys with what each of them opens, action by action and index by index.
func TestHolds(t *testing.T) {
	k, _ := newStore(t)
	rights := [][]string{{"*"}, {"*.get"}, {"keys.create"}, {"search"}, {"documents.*"}, {"documents.add", "documents.get", "documents.delete"}, {"search", "keys.get"},
		{"documents.get"}, {"chatCompletions", "search"}, {}}
	places := [][]string{{"*"}, {"a*"}, {"ab", "b"}, {"ab*", "b"}, {"b"}, {"x", "*"}, {}}
	uids := []string{"a", "ab", "abc", "b", "bc", "x", "y"}
	var all []*Key
	for _, actions := range rights {
		for _, indexes := range places {
			key, err := k.Create(Key{UID: uuid.New(), Actions: actions, Indexes: indexes})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, key)
		}
	}
	opens := func(key *Key, action, uid string) bool {
		c := &Caller{key: k.table.Load().byUID[key.UID]}
		return c.May(action, uid)
	}
	for _, own := range all {
		c := &Caller{key: k.table.Load().byUID[own.UID]}
		for _, other := range all {
			want := true
			for _, a := range actions {
				for _, uid := range uids {
					want = want && (!opens(other, a.name, uid) || opens(own, a.name, uid))
				}
			}
			got := c.Holds(other)
			if got && !want {
				t.Errorf("%v on %v holds %v on %v", own.Actions, own.Indexes, other.Actions, other.Indexes)
			}
			if !got && want && len(other.Actions) > 0 && len(other.Indexes) > 0 {
				t.Errorf("%v on %v does not hold %v on %v", own.Actions, own.Indexes, other.Actions, other.Indexes)
			}
		}
		if !(*Caller)(nil).Holds(own) {
			t.Errorf("the master key does not hold %v on %v", own.Actions, own.Indexes)
		}
	}
	if c := (&Caller{key: k.table.Load().byUID[all[0].UID], token: &token{rules: []rule{{pattern: "*"}}}}); c.Holds(all[21]) {
		t.Error("a tenant token holds the rights of a key")
	}
}

// TestWithoutMasterKey checks that an empty master key, which is no secret, does not sign values.
func TestWithoutMasterKey(t *testing.T) {
	k := openStore(t, t.TempDir()+"/auth.db", "", nil)
	defer closeStore(t, k)
	for _, key := range k.List() {
		v := derive("", key.UID)
		token := signWith(t, jwt.SigningMethodHS256, hs256, `{"apiKeyUid":"`+key.UID.String()+`","searchRules":["*"]}`, []byte(v.text()))
		for _, credential := range []string{"", v.text(), token} {
			if _, err := k.Authorize(credential, "search", ""); err == nil {
				t.Errorf("%q is accepted", credential)
			}
		}
	}
}

func FuzzToken(f *testing.F) {
	f.Add(recorded)
	f.Add("..")
	f.Add(sign(f, jwt.SigningMethodHS256, hs256, `{"apiKeyUid":"`+parent+`","searchRules":{"a":{"filter":[1]}},"exp":4102444800}`))
	f.Fuzz(func(t *testing.T, text string) {
		tok, err := parseToken(text, master, time.Unix(0, 0))
		if err == nil && strings.Count(text, ".") != 2 {
			t.Errorf("%q is a token for %v", text, tok.key)
		}
	})
}
