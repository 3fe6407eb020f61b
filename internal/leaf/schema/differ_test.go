package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast"
	"github.com/holdfast-dev/holdfast/internal/leaf/testrepeat"
)

const (
	d7    = `"$schema":"http://json-schema.org/draft-07/schema#"`
	d2019 = `"$schema":"https://json-schema.org/draft/2019-09/schema"`
	d2020 = `"$schema":"https://json-schema.org/draft/2020-12/schema"`
)

// Reasons for which the peer accepts a schema that we reject, or the other way
// round.
const (
	becauseCircle    = "a circle of references at one place is found when a schema is compiled; the peer fails each document instead"
	becauseDialect   = "D7: a schema of another dialect is not applied; the peer knows draft-04 and draft-06"
	becauseVocab     = "D7: a part of a dialect is none by itself; the peer takes its $vocabulary"
	becauseDynamic   = "a dialect's own schema, whose references depend on the referrer, is no target (unchanged)"
	becauseUnreached = "an embedded draft-04 or draft-06 resource is not checked: it is rejected when it is referred to"
	becausePartly    = "the peer checks what is nested in a 2019-09 resource inside another dialect against a part of 2019-09"
	becauseUnchecked = "2020-12 has no additionalItems; the peer does not check a schema there that is referred to"
	becauseOpaque    = "RFC 3986: a path has no meaning below an opaque base; the peer resolves it to the base itself"
	becauseInternal  = "the address that a schema has inside the package names no dialect"
	becauseLimit     = "a limit of this package"
	becauseTwice     = "JSON with a repeated name is rejected; the peer's reader keeps the last"
)

// decisions are schemas that the peer and we must decide alike, but for those
// with a reason.
var decisions = []struct{ name, schema, reason string }{
	{"empty", `{}`, ""},
	{"true", `true`, ""},
	{"false", `false`, ""},
	{"null", `null`, ""},
	{"list", `[]`, ""},
	{"string", `"x"`, ""},
	{"repeated_name", `{"type":"string","type":"object"}`, becauseTwice},

	// $schema.
	{"http_2020", `{"$schema":"http://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}]}`, ""},
	{"hash_2020", `{"$schema":"https://json-schema.org/draft/2020-12/schema#","prefixItems":[{"type":"string"}]}`, ""},
	{"hash_2019", `{"$schema":"https://json-schema.org/draft/2019-09/schema#","items":[{"type":"string"}]}`, ""},
	{"https_07", `{"$schema":"https://json-schema.org/draft-07/schema","items":[{"type":"string"}]}`, ""},
	{"fragment_07", `{"$schema":"http://json-schema.org/draft-07/schema#/x"}`, becauseDialect},
	{"two_hashes", `{"$schema":"http://json-schema.org/draft-07/schema##"}`, becauseDialect},
	{"inner_fragment", `{"properties":{"a":{"$schema":"http://json-schema.org/draft-07/schema#x"}}}`, becauseDialect},
	{"no_scheme", `{"$schema":"json-schema.org/draft-07/schema"}`, ""},
	{"empty_dialect", `{"$schema":""}`, ""},
	{"unknown_dialect", `{"$schema":"https://example.com/mine"}`, ""},
	{"draft_04", `{"$schema":"http://json-schema.org/draft-04/schema#","id":"https://e.com/x"}`, becauseDialect},
	{"draft_06", `{"$schema":"http://json-schema.org/draft-06/schema#"}`, becauseDialect},
	{"latest", `{"$schema":"https://json-schema.org/schema"}`, becauseDialect},
	{"vocabulary_at_root", `{"$schema":"https://json-schema.org/draft/2020-12/meta/core"}`, becauseVocab},
	{"inner_known_without_id", `{"properties":{"a":{"$schema":"http://json-schema.org/draft-04/schema#","type":"string"}}}`, ""},
	{"inner_known_other_id", `{"properties":{"a":{"$schema":"http://json-schema.org/draft-04/schema#","$id":"a","type":"string"}}}`, ""},
	{"inner_unknown_without_id", `{"properties":{"a":{"$schema":"https://example.com/mine","type":"string"}}}`, ""},
	{"inner_not_a_string", `{"properties":{"a":{"$schema":5}}}`, ""},
	{"property_named_schema", `{"properties":{"$schema":{"type":"string"},"$id":{"type":"string"},"$ref":{"type":"string"}}}`, ""},
	{"inner_07_in_2020", `{"$ref":"a","$defs":{"a":{` + d7 + `,"$id":"a","items":[{"type":"string"}],"additionalItems":false}}}`, ""},
	{"inner_07_in_2020_invalid", `{"$defs":{"a":{` + d7 + `,"$id":"a","items":[5]}}}`, ""},
	{"inner_07_items_list_is_2020", `{"$defs":{"a":{"$id":"a","items":[{}]}}}`, ""},
	{"inner_2020_in_07", `{` + d7 + `,"allOf":[{"$ref":"a"}],"definitions":{"a":{` + d2020 + `,"$id":"a","prefixItems":[{"type":"string"}],"items":false}}}`, ""},
	{"inner_2020_in_07_invalid", `{` + d7 + `,"definitions":{"a":{` + d2020 + `,"$id":"a","items":[{}]}}}`, ""},
	{"three_dialects", `{` + d7 + `,"$ref":"#/definitions/a","definitions":{"a":{` + d2019 + `,"$id":"a","$ref":"b","$defs":{"b":{` + d2020 + `,"$id":"b","$dynamicRef":"#c","$defs":{"c":{"$dynamicAnchor":"c","type":"array"}}}}}}}`, ""},
	{"three_dialects_invalid", `{` + d7 + `,"definitions":{"a":{` + d2019 + `,"$id":"a","$defs":{"b":{` + d2020 + `,"$id":"b","$defs":{"c":{"type":"list"}}}}}}}`, becausePartly},
	{"inner_2019_in_07_invalid", `{` + d7 + `,"definitions":{"a":{` + d2019 + `,"$id":"a","$defs":{"c":{"type":"list"}}}}}`, becausePartly},
	{"inner_2019_in_07", `{` + d7 + `,"$ref":"#/definitions/a","definitions":{"a":{` + d2019 + `,"$id":"a","items":[{"type":"string"}],"unevaluatedItems":false}}}`, ""},
	{"dialect_in_a_list", `{"allOf":[{"type":"array"},{` + d7 + `,"$id":"a","items":[{"type":"string"}]}]}`, ""},
	{"dialect_in_a_list_invalid", `{"allOf":[{"type":"array"},{` + d7 + `,"$id":"a","items":[{"type":"strin"}]}]}`, ""},
	{"inner_draft_06", `{"$ref":"a","$defs":{"a":{"$schema":"http://json-schema.org/draft-06/schema#","$id":"a"}}}`, becauseDialect},
	{"inner_draft_04_unreached", `{"$defs":{"a":{"$schema":"http://json-schema.org/draft-04/schema#","id":"a","exclusiveMinimum":true,"minimum":0}}}`, ""},
	{"inner_draft_04_unreached_invalid", `{"$defs":{"a":{"$schema":"http://json-schema.org/draft-04/schema#","id":"a","type":"strin"}}}`, becauseUnreached},
	{"inner_draft_04_address_used", `{"$ref":"a#/definitions/b","$defs":{"a":{"$schema":"http://json-schema.org/draft-04/schema#","id":"a","definitions":{"b":{` + d2020 + `,"$id":"b"}}}}}`, ""},
	{"inner_vocabulary", `{"$defs":{"a":{"$schema":"https://json-schema.org/draft/2020-12/meta/core","$id":"a"}}}`, becauseVocab},
	{"inner_own_address", `{"$defs":{"a":{"$schema":"holdfast://schema/root","$id":"a"}}}`, becauseInternal},

	// $id.
	{"unicode_id", `{"$id":"https://example.com/é/ü","$ref":"ß","$defs":{"a":{"$id":"ß","type":"string"}}}`, ""},
	{"unicode_id_encoded", `{"$id":"https://example.com/","$ref":"%C3%9F","$defs":{"a":{"$id":"ß","type":"string"}}}`, ""},
	{"nested_relative_ids", `{"$id":"https://e.com/a/b","$ref":"c/d","$defs":{"x":{"$id":"c/","$defs":{"y":{"$id":"d","type":"string"}}}}}`, ""},
	{"dotted_id", `{"$id":"https://e.com/a/b/","$ref":"/x","$defs":{"x":{"$id":"../../x","type":"string"}}}`, ""},
	{"id_only_fragment", `{"$defs":{"a":{"$id":"#"}}}`, ""},
	{"id_empty", `{"$defs":{"a":{"$id":""}}}`, ""},
	{"id_with_fragment_2020", `{"$defs":{"a":{"$id":"a#b"}}}`, ""},
	{"id_with_empty_fragment_2020", `{"$ref":"a","$defs":{"a":{"$id":"a#","type":"string"}}}`, ""},
	{"id_with_query", `{"$ref":"?q","$defs":{"a":{"$id":"?q","type":"string"}}}`, ""},
	{"id_not_a_string", `{"$defs":{"a":{"$id":5}}}`, ""},
	{"id_bad_escape", `{"$id":"https://e.com/%zz"}`, ""},
	{"id_bad_port", `{"$id":"https://e.com:x/"}`, ""},
	{"id_of_root_again", `{"$id":"https://e.com/a","$defs":{"a":{"$id":"https://e.com/a"}}}`, ""},
	{"id_twice", `{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`, ""},
	{"id_twice_other_spelling", `{"$id":"https://e.com/","$defs":{"a":{"$id":"x"},"b":{"$id":"https://e.com/./x"}}}`, ""},
	{"id_in_enum_is_data", `{"$ref":"x","$defs":{"a":{"enum":[{"$id":"x"}]}}}`, ""},
	{"id_in_const_is_data", `{"$defs":{"a":{"const":{"$id":"x"}},"b":{"const":{"$id":"x"}}}}`, ""},
	{"id_in_unknown_keyword", `{"$ref":"x","unknown":{"$id":"x"}}`, ""},
	{"id_in_odd_place_reached", `{"allOf":[{"$ref":"#/odd"}],"odd":{"$id":"x","$ref":"#/y","y":{"type":"string"}}}`, ""},
	{"id_next_to_ref_07", `{` + d7 + `,"definitions":{"a":{"$id":"x","$ref":"#/definitions/b"},"b":{}},"properties":{"p":{"$ref":"x"}}}`, ""},
	{"root_id_next_to_ref_07", `{` + d7 + `,"$id":"https://e.com/a","$ref":"#/definitions/b","definitions":{"b":{"type":"string"}}}`, ""},
	{"id_is_an_anchor_07", `{` + d7 + `,"allOf":[{"$ref":"#foo"}],"definitions":{"a":{"$id":"#foo","type":"string"}}}`, ""},
	{"id_with_an_anchor_07", `{` + d7 + `,"allOf":[{"$ref":"x#foo"}],"definitions":{"a":{"$id":"x#foo","type":"string"}}}`, ""},
	{"id_is_a_pointer_07", `{` + d7 + `,"allOf":[{"$ref":"#/definitions/a"}],"definitions":{"a":{"$id":"#/definitions/b","type":"string"}}}`, ""},
	{"id_bad_fragment_07", `{` + d7 + `,"definitions":{"a":{"$id":"#%zz"}}}`, ""},
	{"anchor_twice_07", `{` + d7 + `,"definitions":{"a":{"$id":"#x"},"b":{"$id":"#x"}}}`, ""},
	{"anchor_keyword_in_07", `{` + d7 + `,"allOf":[{"$ref":"#x"}],"definitions":{"a":{"$anchor":"x"}}}`, ""},
	{"urn", `{"$id":"urn:uuid:deadbeef-1234-0000-0000-4321feebdaed","properties":{"a":{"$ref":"urn:uuid:deadbeef-1234-0000-0000-4321feebdaed#/$defs/b"},"c":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string"}}}`, ""},
	{"urn_anchor", `{"$id":"urn:x:y","properties":{"a":{"$ref":"#z"}},"$defs":{"b":{"$anchor":"z","type":"string"}}}`, ""},
	{"urn_relative", `{"$id":"urn:x:y","properties":{"a":{"$ref":"z"}}}`, becauseOpaque},

	// Anchors.
	{"anchor", `{"$ref":"#x","$defs":{"a":{"$anchor":"x","type":"string"}}}`, ""},
	{"anchor_percent", `{"$ref":"#%78","$defs":{"a":{"$anchor":"x","type":"string"}}}`, ""},
	{"anchor_unicode", `{"$defs":{"a":{"$anchor":"é"}}}`, ""},
	{"anchor_empty", `{"$defs":{"a":{"$anchor":""}}}`, ""},
	{"anchor_slash", `{"$defs":{"a":{"$anchor":"/a"}}}`, ""},
	{"anchor_of_other_resource", `{"$ref":"#x","$defs":{"a":{"$id":"a","$anchor":"x","type":"string"}}}`, ""},
	{"anchor_in_resource", `{"$ref":"a#x","$defs":{"a":{"$id":"a","$defs":{"b":{"$anchor":"x","type":"string"}}}}}`, ""},
	{"anchor_twice", `{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, ""},
	{"anchor_twice_two_resources", `{"$ref":"#x","$defs":{"a":{"$anchor":"x","type":"string"},"b":{"$id":"b","$anchor":"x"}}}`, ""},
	{"anchor_both_kinds", `{"$ref":"#x","$defs":{"a":{"$anchor":"x","$dynamicAnchor":"x","type":"string"}}}`, ""},
	{"anchor_twice_both_kinds", `{"$defs":{"a":{"$anchor":"x"},"b":{"$dynamicAnchor":"x"}}}`, ""},
	{"anchor_and_pointer", `{"$ref":"#/$defs/a","$defs":{"a":{"$anchor":"x","type":"string"}}}`, ""},
	{"dynamic_anchor_2019", `{` + d2019 + `,"$ref":"#x","$defs":{"a":{"$dynamicAnchor":"x"}}}`, ""},
	{"dynamic_ref_2019", `{` + d2019 + `,"$dynamicRef":"#nowhere"}`, ""},
	{"dynamic_ref_to_static", `{"$dynamicRef":"#x","$defs":{"a":{"$anchor":"x","type":"string"}}}`, ""},
	{"dynamic_ref_to_pointer", `{"$dynamicRef":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, ""},
	{"dynamic_ref_absent", `{"$dynamicRef":"#x"}`, ""},
	{"dynamic_outermost", `{"$id":"https://e.com/r","$ref":"l","$defs":{"i":{"$dynamicAnchor":"t","type":"string"},"l":{"$id":"l","items":{"$dynamicRef":"#t"},"$defs":{"d":{"$dynamicAnchor":"t"}}}}}`, ""},
	{"dynamic_anchor_with_bad_ref", `{"$defs":{"a":{"$dynamicAnchor":"t","$ref":"elsewhere"}}}`, ""},
	{"dynamic_anchor_with_bad_ref_unreached", `{"$defs":{"a":{"$id":"a","$defs":{"b":{"$dynamicAnchor":"t","$ref":"elsewhere"}}}}}`, ""},
	{"recursive", `{` + d2019 + `,"$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}},"additionalProperties":false}`, ""},
	{"recursive_extended", `{` + d2019 + `,"$id":"https://e.com/x","$recursiveAnchor":true,"$ref":"t","unevaluatedProperties":false,"$defs":{"t":{"$id":"t","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}}}`, ""},
	{"recursive_not_anchored", `{` + d2019 + `,"$id":"https://e.com/x","$ref":"t","$defs":{"t":{"$id":"t","$recursiveAnchor":true,"properties":{"a":{"$recursiveRef":"#"}}}}}`, ""},
	{"recursive_in_2020", `{"properties":{"a":{"$recursiveRef":"#"}},"additionalProperties":false}`, ""},

	// $ref.
	{"ref_empty", `{"properties":{"a":{"$ref":""}},"additionalProperties":false}`, ""},
	{"ref_hash", `{"properties":{"a":{"$ref":"#"}},"additionalProperties":false}`, ""},
	{"ref_hash_slash", `{"properties":{"a":{"$ref":"#/"}}}`, ""},
	{"ref_empty_name", `{"properties":{"a":{"$ref":"#/$defs/"}},"$defs":{"":{"type":"string"}}}`, ""},
	{"ref_escapes", `{"$ref":"#/$defs/a~1b~0c%25d%22e","$defs":{"a/b~c%d\"e":{"type":"string"}}}`, ""},
	{"ref_escapes_percent_tilde", `{"$ref":"#/$defs/a%7E1b","$defs":{"a/b":{"type":"string"}}}`, ""},
	{"ref_unicode", `{"$ref":"#/$defs/é","$defs":{"é":{"type":"string"}}}`, ""},
	{"ref_unicode_percent", `{"$ref":"#/$defs/%C3%A9","$defs":{"é":{"type":"string"}}}`, ""},
	{"ref_tilde_two", `{"$ref":"#/$defs/a~2","$defs":{"a~2":{}}}`, ""},
	{"ref_tilde_last", `{"$ref":"#/$defs/a~","$defs":{"a~":{}}}`, ""},
	{"ref_bad_percent", `{"$ref":"#/$defs/%","$defs":{"%":{}}}`, ""},
	{"ref_index", `{"properties":{"a":{"$ref":"#/allOf/1"}},"allOf":[{},{"type":"object"}]}`, ""},
	{"ref_index_beyond", `{"properties":{"a":{"$ref":"#/allOf/2"}},"allOf":[{},{}]}`, ""},
	{"ref_index_negative", `{"properties":{"a":{"$ref":"#/allOf/-1"}},"allOf":[{},{}]}`, ""},
	{"ref_index_dash", `{"properties":{"a":{"$ref":"#/allOf/-"}},"allOf":[{},{}]}`, ""},
	{"ref_index_zero", `{"properties":{"a":{"$ref":"#/allOf/01"}},"allOf":[{},{"type":"object"}]}`, ""},
	{"ref_to_number", `{"$ref":"#/x","x":5}`, ""},
	{"ref_to_string", `{"$ref":"#/x","x":"y"}`, ""},
	{"ref_to_null", `{"$ref":"#/x","x":null}`, ""},
	{"ref_to_list", `{"$ref":"#/allOf","allOf":[{}]}`, ""},
	{"ref_to_bool", `{"properties":{"a":{"$ref":"#/x"}},"x":false}`, ""},
	{"ref_into_string", `{"$ref":"#/x/y","x":"y"}`, ""},
	{"ref_to_odd_place", `{"$ref":"#/x/y","x":{"y":{"type":"string"}}}`, ""},
	{"ref_to_odd_place_invalid", `{"$ref":"#/x/y","x":{"y":{"type":"strin"}}}`, ""},
	{"ref_to_odd_place_far", `{"$ref":"#/x/y/z/0","x":{"y":{"z":[{"allOf":[{"minimum":"5"}]}]}}}`, ""},
	{"ref_to_properties", `{"allOf":[{"$ref":"#/properties"}],"properties":{"type":{"type":"string"}}}`, ""},
	{"ref_to_properties_map", `{"allOf":[{"$ref":"#/properties"}],"properties":{"a":{"type":"string"}}}`, ""},
	{"ref_to_enum_value", `{"$ref":"#/enum/0","enum":[{"type":"object"}]}`, ""},
	{"ref_to_default", `{"properties":{"a":{"$ref":"#/default"}},"default":{"type":"string"}}`, ""},
	{"ref_to_additional_items_2020", `{"$ref":"#/additionalItems","additionalItems":{"type":"string"}}`, ""},
	{"ref_to_additional_items_2020_invalid", `{"$ref":"#/additionalItems","additionalItems":{"type":5}}`, becauseUnchecked},
	{"ref_with_siblings_07", `{` + d7 + `,"properties":{"a":{"$ref":"#/definitions/b","type":"integer","title":"t"}},"definitions":{"b":{}}}`, ""},
	{"ref_with_siblings_invalid_07", `{` + d7 + `,"properties":{"a":{"$ref":"#/definitions/b","type":"strin"}},"definitions":{"b":{}}}`, ""},
	{"ref_with_siblings_2019", `{` + d2019 + `,"properties":{"a":{"$ref":"#/$defs/b","type":"integer"}},"$defs":{"b":{"minimum":1}}}`, ""},
	{"ref_not_a_string", `{"properties":{"a":{"$ref":{"type":"string"}}}}`, ""},
	{"ref_through_resource", `{"$ref":"#/$defs/a/$defs/b","$defs":{"a":{"$id":"https://e.com/a","$defs":{"b":{"$ref":"#/$defs/c"},"c":{"type":"string"}}}}}`, ""},
	{"ref_in_unreached_definition", `{"$defs":{"a":{"$ref":"https://e.com/other"}}}`, ""},
	{"ref_in_unreached_then", `{"if":false,"then":{"$ref":"https://e.com/other"}}`, ""},
	{"ref_in_unreached_else", `{"if":true,"else":{"$ref":"https://e.com/other"}}`, ""},
	{"ref_in_then_without_if", `{"then":{"$ref":"https://e.com/other"}}`, ""},
	{"ref_in_resource_root", `{"$ref":"#/$defs/a/$defs/b","$defs":{"a":{"$id":"a","$ref":"https://e.com/other","$defs":{"b":{}}}}}`, ""},
	{"ref_remote", `{"properties":{"a":{"$ref":"https://e.com/other"}}}`, ""},
	{"ref_own_address", `{"properties":{"a":{"$ref":"holdfast://schema/root#"}},"additionalProperties":false}`, ""},
	{"ref_case_of_host", `{"$id":"https://E.com/a","properties":{"a":{"$ref":"https://e.com/a"}}}`, ""},
	{"ref_circle", `{"$ref":"#"}`, becauseCircle},
	{"ref_circle_of_three", `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/c"},"c":{"$ref":"#/$defs/a"}}}`, becauseCircle},
	{"ref_circle_07", `{` + d7 + `,"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/a"}}}`, becauseCircle},
	{"ref_circle_unreached", `{"$defs":{"a":{"$ref":"#/$defs/a"}}}`, ""},
	{"ref_07", `{"$ref":"http://json-schema.org/draft-07/schema#"}`, ""},
	{"ref_07_https", `{"$ref":"https://json-schema.org/draft-07/schema"}`, ""},
	{"ref_07_definition", `{"properties":{"a":{"$ref":"http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger"}}}`, ""},
	{"ref_07_absent", `{"$ref":"http://json-schema.org/draft-07/schema#/definitions/x"}`, ""},
	{"ref_07_anchor", `{"$ref":"http://json-schema.org/draft-07/schema#x"}`, ""},
	{"ref_04", `{"$ref":"http://json-schema.org/draft-04/schema"}`, becauseDialect},
	{"ref_2019", `{"$ref":"https://json-schema.org/draft/2019-09/schema"}`, becauseDynamic},
	{"ref_2020", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, becauseDynamic},
	{"ref_2020_core", `{"$ref":"https://json-schema.org/draft/2020-12/meta/core"}`, becauseDynamic},
	{"ref_2020_validation", `{"$ref":"https://json-schema.org/draft/2020-12/meta/validation"}`, ""},
	{"ref_2020_simple_types", `{"$ref":"https://json-schema.org/draft/2020-12/meta/validation#/$defs/simpleTypes"}`, ""},
	{"ref_2020_core_uri", `{"$ref":"https://json-schema.org/draft/2020-12/meta/core#/$defs/uriString"}`, ""},
	{"ref_2020_core_uri_dynamic", `{"$dynamicAnchor":"a","properties":{"a":{"$dynamicRef":"#a"},"b":{"$ref":"https://json-schema.org/draft/2020-12/meta/core#/$defs/uriString"}}}`, ""},
	{"ref_no_such_standard", `{"$ref":"https://json-schema.org/draft/2020-12/meta/nothing"}`, ""},
	{"ref_standard_elsewhere", `{"$ref":"https://json-schema.org/2020-12/schema"}`, ""},
	{"ref_standard_directory", `{"$ref":"https://json-schema.org/draft-07"}`, ""},
	{"copy_of_the_dialect_07", `{` + d7 + `,"$id":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{"type":"string"}}}`, ""},

	// Patterns.
	{"pattern_look_ahead", `{"pattern":"(?=x)"}`, ""},
	{"pattern_unreached", `{"$defs":{"a":{"pattern":"(?=x)"}}}`, ""},
	{"pattern_properties", `{"patternProperties":{"(":{}}}`, ""},
	{"pattern_repeat", `{"pattern":"a{1001}"}`, ""},
	{"pattern_unicode", `{"pattern":"^\\p{L}+$"}`, ""},
	{"pattern_ecma_class", `{"pattern":"^[^\\s]+\\.[a-z\\d]+$"}`, ""},

	// What tools declare.
	{"mcp_tool", `{` + d7 + `,"type":"object","properties":{"path":{"type":"string","description":"p"},"edits":{"type":"array","items":{"type":"object","properties":{"oldText":{"type":"string"},"newText":{"type":"string"}},"required":["oldText","newText"],"additionalProperties":false}},"dryRun":{"type":"boolean","default":false}},"required":["path","edits"],"additionalProperties":false}`, ""},
	{"pydantic", `{"title":"Args","type":"object","$defs":{"Kind":{"enum":["a","b"],"title":"Kind","type":"string"}},"properties":{"kind":{"$ref":"#/$defs/Kind","default":"a"},"limit":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null,"title":"Limit"}},"required":["kind"]}`, ""},
	{"openapi", `{"type":"object","properties":{"a":{"type":"string","nullable":true,"example":"x","xml":{"name":"a"},"format":"int32"},"b":{"oneOf":[{"type":"string"},{"type":"array"}],"discriminator":{"propertyName":"t","mapping":{"x":"#/y"}}}},"x-internal":true,"externalDocs":{"url":"u"}}`, ""},
	{"openapi_boolean_bound", `{"type":"number","minimum":0,"exclusiveMinimum":true}`, ""},
	{"draft_04_required", `{"properties":{"a":{"type":"string","required":true}}}`, ""},
	{"draft_04_id_is_data", `{"properties":{"id":{"type":"string"},"a":{"id":"x","type":"string"}}}`, ""},
	{"definitions_in_2020", `{"properties":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{"type":"string"}}}`, ""},
	{"defs_in_07", `{` + d7 + `,"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string"}}}`, ""},
	{"defs_in_07_invalid", `{` + d7 + `,"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"strin"}}}`, ""},
	{"dependencies_in_2020", `{"dependencies":{"a":["b"],"b":{"minProperties":3}}}`, ""},
	{"items_list_in_2020", `{"items":[{"type":"string"}]}`, ""},
	{"required_twice", `{"required":["a","a"]}`, ""},
	{"required_empty", `{"required":[]}`, ""},
	{"enum_empty", `{"enum":[]}`, ""},
	{"enum_twice", `{"enum":[1,1.0]}`, ""},
	{"type_list_empty", `{"type":[]}`, ""},
	{"type_list_twice", `{"type":["string","string"]}`, ""},
	{"all_of_empty", `{"allOf":[]}`, ""},
	{"unknown_format", `{"format":"color"}`, ""},
	{"unknown_format_07", `{` + d7 + `,"format":"color"}`, ""},
	{"count_as_fraction", `{"maxLength":2.0,"minItems":1e0}`, ""},
	{"count_broken", `{"maxLength":2.5}`, ""},
	{"multiple_of_zero", `{"multipleOf":0}`, ""},
	{"multiple_of_negative", `{"multipleOf":-1}`, ""},
	{"unique_is_no_boolean", `{"uniqueItems":"yes"}`, ""},
	{"deep", strings.Repeat(`{"not":`, 100) + `{}` + strings.Repeat(`}`, 100), ""},
	{"too_deep", strings.Repeat(`{"not":`, 200) + `{}` + strings.Repeat(`}`, 200), becauseLimit},
	{"chain", chainOfReferences(150), ""},
}

// chainOfReferences returns a schema of n definitions, each of which refers to
// the next.
func chainOfReferences(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"$ref":"#/$defs/d%d"},`, i, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
	return b.String()
}

// probes are documents on which validators may differ.
var probes = []string{
	`null`, `true`, `0`, `-1`, `1.5`, `2`, `""`, `"a"`, `"integer"`, `"long string"`, `[]`, `["a"]`, `[1]`, `["a",1]`, `[["a"]]`,
	`{}`, `{"a":"x"}`, `{"a":1}`, `{"a":{}}`, `{"a":{"b":1}}`, `{"b":1}`, `{"a":null,"b":2,"c":[]}`, `{"c":"x","kind":"a"}`,
	`{"path":"p","edits":[{"oldText":"a","newText":"b"}]}`, `{"type":"string","minLength":-1}`, `{"minLength":1,"$id":"x"}`,
}

// decide compiles a schema both ways. A peer's panic is a no.
func decide(t *testing.T, raw string) (ours *Schema, err error, validates func(any) bool, theirs error) {
	t.Helper()
	ours, err = Compile("differ", []byte(raw))
	if err != nil {
		checkFlaw(t, err)
	}
	func() {
		defer func() {
			if p := recover(); p != nil {
				theirs = fmt.Errorf("panic: %v", p)
			}
		}()
		s, failed := peer(raw)
		validates, theirs = func(v any) bool { return s.Validate(v) == nil }, failed
	}()
	return ours, err, validates, theirs
}

// TestDecidesAsPeer compares what is accepted and what is rejected, of schemas
// and then of documents.
func TestDecidesAsPeer(t *testing.T) {
	for _, c := range decisions {
		t.Run(c.name, func(t *testing.T) {
			ours, err, validates, theirs := decide(t, c.schema)
			switch differs := (err == nil) != (theirs == nil); {
			case differs && c.reason == "":
				t.Fatalf("we say %v, the peer says %v", err, theirs)
			case !differs && c.reason != "":
				t.Fatalf("listed as different (%s); we say %v, the peer says %v", c.reason, err, theirs)
			}
			if err != nil || theirs != nil {
				return
			}
			compareDocuments(t, ours, validates)
		})
	}
}

func compareDocuments(t *testing.T, ours *Schema, validates func(any) bool) {
	t.Helper()
	for _, doc := range probes {
		v := tree(t, doc)
		found, err := ours.Validate(context.Background(), v)
		if want := validates(v); err != nil || (len(found) == 0) != want {
			t.Errorf("%s: valid for the peer: %v, ours: %v %v", doc, want, found, err)
		}
	}
}

// keywords are those of all dialects.
var keywords = strings.Fields(`$schema $id $ref $anchor $dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $vocabulary $comment
	$defs definitions id title description default examples deprecated readOnly writeOnly type enum const format
	minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern minItems maxItems uniqueItems
	items additionalItems prefixItems contains minContains maxContains unevaluatedItems minProperties maxProperties required
	properties patternProperties additionalProperties propertyNames unevaluatedProperties dependencies dependentRequired
	dependentSchemas allOf anyOf oneOf not if then else contentEncoding contentMediaType contentSchema`)

// TestDecidesKeywordsAsPeer gives every keyword a value of every type, in
// every dialect.
func TestDecidesKeywordsAsPeer(t *testing.T) {
	values := []string{`null`, `true`, `false`, `-1`, `0`, `3`, `1.5`, `1e2`, `""`, `"a"`, `"string"`, `"#"`, `"#/x"`, `"("`, `[]`, `["a"]`, `["string","null"]`,
		`[1]`, `[{}]`, `[true,{"type":"string"}]`, `[{"type":1}]`, `[null]`, `{}`, `{"a":{}}`, `{"a":true}`, `{"a":["b"]}`, `{"a":["b","b"]}`,
		`{"a":{"type":"x"}}`, `{"a":1}`, `{"type":"string"}`, `{"type":1}`, `{"(":{}}`}
	accepted := 0
	for i, dialect := range []string{d7, d2019, d2020} {
		for j, keyword := range keywords {
			for k, value := range values {
				if testrepeat.Times(1, 0) == 0 && (i+j+k)%8 != 0 {
					continue
				}
				inner, at := fmt.Sprintf(`{%q:%s}`, keyword, value), "/properties/p/allOf/0"
				if k%4 != 0 {
					at = "/properties/p"
				} else {
					inner = `{"allOf":[` + inner + `]}`
				}
				raw := fmt.Sprintf(`{%s,"properties":{"p":%s}}`, dialect, inner)
				ours, err, validates, theirs := decide(t, raw)
				if err != nil && theirs == nil && strings.Contains(err.Error(), "refers to itself") {
					continue // becauseCircle
				}
				if (err == nil) != (theirs == nil) {
					t.Errorf("%s: we say %v, the peer says %v", raw, err, theirs)
					continue
				}
				if err == nil {
					accepted++
					compareDocuments(t, ours, validates)
					continue
				}
				var f *flaw
				if !errors.As(err, &f) || !strings.HasPrefix(f.pointer, at) {
					t.Errorf("%s: the error does not name the place: %v", raw, err)
				}
			}
		}
	}
	t.Logf("%d accepted", accepted)
}

// TestDecidesReferencesAsPeer draws documents that are full of addresses,
// anchors and references.
func TestDecidesReferencesAsPeer(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 3))
	counts := map[string]int{}
	for range testrepeat.Times(3000, 300) {
		raw := randomAddresses(r)
		ours, err, validates, theirs := decide(t, raw)
		switch {
		case err == nil && theirs == nil:
			counts["both accept"]++
			compareDocuments(t, ours, validates)
		case err != nil && theirs != nil:
			counts["both reject"]++
		case err != nil && strings.Contains(err.Error(), "refers to itself"):
			counts["circle"]++
		case err != nil && strings.Contains(err.Error(), "not valid in its dialect") && strings.Count(raw, "2019-09") > 0:
			counts["checked by the peer in part"]++ // becausePartly
		default:
			t.Errorf("%s: we say %v, the peer says %v", raw, err, theirs)
		}
	}
	t.Log(counts)
	for _, name := range []string{"both accept", "both reject", "circle"} {
		if counts[name] < testrepeat.Times(50, 5) {
			t.Errorf("too few of %s: %d", name, counts[name])
		}
	}
}

// randomAddresses draws a schema whose subschemas have addresses and refer to
// each other.
func randomAddresses(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	dialects := []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"}
	ids := []string{"a", "b", "x/", "x/a", "../a", "https://e.com/r", "#a", "a#b", "?q"}
	var schema func(depth int) any
	schema = func(depth int) any {
		m := map[string]any{}
		if r.IntN(5) == 0 {
			m["$id"] = pick(ids...)
			if r.IntN(4) == 0 {
				m["$schema"] = pick(dialects...)
			}
		}
		switch r.IntN(14) {
		case 0:
			m["$anchor"] = pick("a", "b", "c")
		case 1:
			m["$dynamicAnchor"] = pick("a", "b", "c")
		case 2:
			m["$recursiveAnchor"] = true
		case 3:
			m["$dynamicRef"] = pick("#a", "#b", "#", "a#a", "#/$defs/a")
		case 4:
			m["$recursiveRef"] = "#"
		case 5, 6, 7:
			m["$ref"] = pick("#", "#/$defs/a", "#/$defs/b", "#/$defs/a/$defs/b", "#/properties/a", "#/odd/a", "a", "b", "x/a", "#a", "#b", "a#b", "/a", "https://e.com/r", "?q")
		case 8:
			m["type"] = pick("string", "object", "array")
		case 9:
			m["unevaluatedProperties"] = false
		}
		if depth == 0 {
			return m
		}
		for range r.IntN(3) {
			name := pick("a", "b")
			switch r.IntN(6) {
			case 0:
				m["properties"] = map[string]any{name: schema(depth - 1)}
			case 1:
				m["items"] = schema(depth - 1)
			case 2:
				m["allOf"] = []any{schema(depth - 1)}
			case 3:
				m["odd"] = map[string]any{name: schema(depth - 1)}
			default:
				defs, _ := m["$defs"].(map[string]any)
				if defs == nil {
					defs = map[string]any{}
				}
				defs[name] = schema(depth - 1)
				m["$defs"] = defs
			}
		}
		return m
	}
	m := map[string]any{"properties": map[string]any{"a": schema(3), "b": schema(2)}, "$defs": map[string]any{"a": schema(3), "b": schema(2)}}
	m["$schema"] = pick(dialects...)
	if r.IntN(2) == 0 {
		m["$id"] = pick("https://e.com/r", "https://e.com/x/r")
	}
	if r.IntN(4) == 0 {
		m["$dynamicAnchor"] = "a"
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestFormatsAsPeer compares every format on strings that are almost right.
func TestFormatsAsPeer(t *testing.T) {
	seeds := map[string][]string{
		"json-pointer":          {"", "/", "/a/b~0c~1", "/~"},
		"relative-json-pointer": {"0", "10/a", "0#", "01"},
		"uuid":                  {"2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380"},
		"semver":                {"1.2.3", "1.0.0-alpha.1+build.01", "0.0.0-01", "1.2", "1.2.3+"},
		"uri":                   {"http://a.b/c?d#e", "urn:x:y", "http://[::1]:80/", "//a", "mailto:a@b", "http://a b"},
		"uri-reference":         {"a/b", "#x", `a\b`, "http://[::1", "%zz"},
		"uri-template":          {"http://a/{b}/c", "/{a}{b}", "/{a", "/a}", "/{{a}}"},
		"ipv4":                  {"127.0.0.1", "01.2.3.4", "256.1.1.1", "1.2.3", "1.2.3.4.5"},
		"ipv6":                  {"::1", "fe80::1%eth0", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8", ":::"},
		"hostname":              {"a.example", "a.", "-a", "a-", "a_b", strings.Repeat("a", 63), strings.Repeat("a.", 127)},
		"email":                 {"a@b.c", `"a b"@c`, "a@[127.0.0.1]", "a@[IPv6:::1]", ".a@b", "a..b@c", "a@", "@b"},
		"date":                  {"2024-02-29", "2023-02-29", "2024-1-01"},
		"time":                  {"12:00:00Z", "23:59:60Z", "15:59:60-08:00", "12:00:00.5+01:00", "24:00:00Z", "12:00:00"},
		"date-time":             {"2024-02-29T12:00:00Z", "2024-02-29t23:59:60.123z", "2024-02-29 12:00:00Z", "1998-12-31T15:59:60-08:00"},
		"duration":              {"P1Y2M3DT4H5M6S", "P1W", "PT1H", "P", "PT", "P1D1Y", "P1WT1H"},
		"period":                {"2024-02-29T12:00:00Z/P1D", "P1D/2024-02-29T12:00:00Z", "2024-02-29T12:00:00Z/2024-02-29T12:00:00Z", "P1D/P1D"},
		"regex":                 {"a+", "(", "(?=x)", "a{2,1}", "[z-a]"},
	}
	seeds["iri"], seeds["iri-reference"] = seeds["uri"], seeds["uri-reference"]
	r := rand.New(rand.NewPCG(25, 4))
	for name, list := range seeds {
		ours, err, validates, theirs := decide(t, fmt.Sprintf(`{%s,"format":%q}`, d7, name))
		if err != nil || theirs != nil {
			t.Fatal(name, err, theirs)
		}
		for _, seed := range list {
			for i := range testrepeat.Times(400, 50) {
				s := seed
				for range min(i, 1+r.IntN(2)) {
					s = mutate(r, s)
				}
				found, err := ours.Validate(context.Background(), s)
				if err != nil {
					t.Fatal(err)
				}
				// A sign before a number is no digit, as the peer has it.
				signed := strings.ContainsAny(s, "+-") && (strings.HasPrefix(name, "ipv4") || name == "email" || strings.Contains(name, "time") || name == "period")
				if want := validates(s); (len(found) == 0) != want && !(want && signed) {
					t.Errorf("%s %q: valid for the peer: %v", name, s, want)
				}
			}
		}
	}
}

// mutate changes, drops, repeats or adds one byte.
func mutate(r *rand.Rand, s string) string {
	const bytes = "0129afzAZ.:-+/#~@%[]{}\"\\ TZPWé"
	i, c := r.IntN(len(s)+1), string([]rune(bytes)[r.IntN(len([]rune(bytes)))])
	for i > 0 && i < len(s) && s[i] >= 0x80 {
		i--
	}
	switch rest := s[i:]; {
	case r.IntN(3) == 0 || rest == "" || rest[0] >= 0x80:
		return s[:i] + c + rest
	case r.IntN(2) == 0:
		return s[:i] + c + rest[1:]
	default:
		return s[:i] + rest[1:]
	}
}

// TestErrorsNamePlace: a rejected schema's error says where and why.
func TestErrorsNamePlace(t *testing.T) {
	for _, c := range []struct{ name, schema, pointer, says, hint string }{
		{"type", `{"properties":{"a":{"type":"strin"}}}`, "/properties/a/type", `want one of "array"`, ""},
		{"type_number", `{"properties":{"a":{"type":5}}}`, "/properties/a/type", "integer", ""},
		{"bound", `{"properties":{"a":{"minimum":"5"}}}`, "/properties/a/minimum", "got string of 1 characters, want number", ""},
		{"name_is_shown", `{"properties":{"4111111111111111 <x>":{"type":5}}}`, "/properties/4111111111111111 <x>/type", "integer", ""},
		{"name_is_escaped", `{"properties":{"a/b~c":{"type":5}}}`, "/properties/a~1b~0c/type", "integer", ""},
		{"required", `{"required":"a"}`, "/required", "want array", ""},
		{"not_a_schema", `{"properties":{"a":5}}`, "/properties/a", "want boolean or object", ""},
		{"list_item", `{` + d7 + `,"items":[{},{"type":[]}]}`, "/items/1/type", "", ""},
		{"other_dialect", `{"$defs":{"a":{` + d7 + `,"$id":"a","items":[5]}}}`, "/$defs/a/items/0", "not valid in its dialect", ""},
		{"pattern", `{"properties":{"a":{"pattern":"(?=x)"}}}`, "/properties/a/pattern", "pattern is not RE2", "look-around"},
		{"pattern_name", `{"patternProperties":{"ok":{},"(":{}}}`, "/patternProperties/(", "pattern is not RE2", "look-around"},
		{"patterns_too_large", `{"pattern":"` + strings.Repeat("[a-z]{999}", 250) + `"}`, "/pattern", "too large together", ""},
		{"outside", `{"properties":{"a":{"$ref":"https://e.com/x"}}}`, "/properties/a/$ref", "refers to https://e.com/x, which is outside", "not fetched"},
		{"absent", `{"properties":{"a":{"$ref":"#/$defs/b"}}}`, "/properties/a/$ref", "absent: #/$defs/b", ""},
		{"absent_anchor", `{"properties":{"a":{"$dynamicRef":"#b"}}}`, "/properties/a/$dynamicRef", "anchor that is absent: #b", ""},
		{"malformed", `{"properties":{"a":{"$ref":"#/a~b"}}}`, "/properties/a/$ref", "malformed", ""},
		{"id_twice", `{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}}}`, "/$defs/b/$id", "/$defs/a has this address already", "own address"},
		{"anchor_twice", `{"$defs":{"a":{"$anchor":"x"},"b":{"$dynamicAnchor":"x"}}}`, "/$defs/b/$dynamicAnchor", "first at /$defs/a", "own name"},
		{"bad_id", `{"$defs":{"a":{"$id":"https://e.com:x"}}}`, "/$defs/a/$id", "address cannot be used", ""},
		{"circle", `{"properties":{"a":{"allOf":[{"$ref":"#/properties/a"}]}}}`, "/properties/a", "refers to itself", "break the circle"},
		{"dialect_inside", `{"$defs":{"a":{"$schema":"https://e.com/mine"}}}`, "/$defs/a/$schema", "not supported", "draft-07"},
		{"dynamic_standard", `{"properties":{"a":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`, "/properties/a/$ref", "depend on the referrer", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Compile("x", []byte(c.schema))
			var f *flaw
			var e *holdfast.Error
			if !errors.As(err, &f) || !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if f.pointer != c.pointer || !strings.Contains(f.why, c.says) || !strings.Contains(e.Hint, c.hint) {
				t.Errorf("got %q at %q (hint %q)", f.why, f.pointer, e.Hint)
			}
		})
	}
}

// TestMetaschemasAreWhole: every dialect's own schema compiles, and is valid
// by itself.
func TestMetaschemasAreWhole(t *testing.T) {
	for _, d := range []dialect{draft7, draft2019, draft2020} {
		g, err := compileMetaschema(d)
		if err != nil {
			t.Fatalf("%s: %v", d.standardFile(), err)
		}
		doc, err := readStandard(d.standardFile())
		if err != nil || doc == nil {
			t.Fatal(doc, err)
		}
		if found, err := g.validate(context.Background(), doc); err != nil || len(found) != 0 {
			t.Errorf("%s: %v %v", d.standardFile(), found, err)
		}
		raw, err := standardFiles.ReadFile("metaschema/" + d.standardFile() + ".json")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Compile("x", raw)
		if dynamic := d != draft7; dynamic != (err != nil) {
			t.Errorf("%s as a schema: %v", d.standardFile(), err)
		}
	}
}

// TestHostileSchemas: the largest and most tangled schemas that the limits let
// through are compiled or rejected in time.
func TestHostileSchemas(t *testing.T) {
	limit := 3 * time.Second
	if testrepeat.Times(10, 1) < 10 {
		limit *= 10 // the race detector makes everything slower
	}
	long := strings.Repeat("n", 400_000)
	nested := func(n int, inner string) string {
		return strings.Repeat(`{"not":`, n) + inner + strings.Repeat(`}`, n)
	}
	var insideOut, spread, dialects []string
	for i := 120; i > 0; i-- {
		insideOut = append(insideOut, fmt.Sprintf(`"p%03d":{"$ref":"#/odd%s"}`, 120-i, strings.Repeat("/not", i)))
	}
	for i := range 1300 {
		spread = append(spread, fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, (i*7+1)%1300))
		dialects = append(dialects, fmt.Sprintf(`"d%d":{"$id":"s%d","$schema":"%s","type":"string"}`, i, i,
			[]string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"}[i%2]))
	}
	for name, raw := range map[string]string{
		"long_name_above_many":    `{"properties":{"` + long + `":{"properties":{` + manyProperties(4000) + `}}}}`,
		"long_name_above_bad":     `{"properties":{"` + long + `":{"properties":{` + manyProperties(2000) + `,"z":{"type":5}}}}}`,
		"long_id_joined":          `{"$id":"https://e.com/` + long + `/","$defs":{` + manyIDs(1300) + `}}`,
		"long_id_referred_to":     `{"$id":"https://e.com/` + long + `/x","properties":{` + strings.ReplaceAll(manyProperties(1300), `{}`, `{"$ref":"x#"}`) + `}}`,
		"long_ids_nested":         nested(1, `{"$id":"https://e.com/`+long+`","properties":{`+manyIDs(1300)+`}}`),
		"chain_of_references":     chainOfReferences(2000),
		"circle_of_references":    `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(spread, ",") + `}}`,
		"odd_places_from_inside":  `{"properties":{` + strings.Join(insideOut, ",") + `},"odd":` + nested(121, `{"properties":{`+manyProperties(1500)+`}}`) + `}`,
		"many_dialects":           `{"$defs":{` + strings.Join(dialects, ",") + `}}`,
		"many_dialects_referred":  `{"allOf":[{"$ref":"s0"},{"$ref":"s1"}],"$defs":{` + strings.Join(dialects, ",") + `}}`,
		"deep_dialects":           strings.Repeat(`{"not":{"$id":"a/","$schema":"http://json-schema.org/draft-07/schema#","not":{"$id":"b/","$schema":"https://json-schema.org/draft/2020-12/schema","not":`, 40) + `{}` + strings.Repeat(`}}}`, 40),
		"pointer_of_slashes":      `{"$ref":"#` + strings.Repeat("/", 900_000) + `"}`,
		"pointer_of_tildes":       `{"$ref":"#/` + strings.Repeat("~0", 400_000) + `"}`,
		"percent_everywhere":      `{"$ref":"#/` + strings.Repeat("%41", 300_000) + `"}`,
		"long_anchor":             `{"$defs":{"a":{"$anchor":"` + long + `"}},"$ref":"#` + long + `"}`,
		"long_bad_anchor":         `{"$defs":{"a":{"$anchor":"` + long + `/"}}}`,
		"long_pattern":            `{"pattern":"` + long + `"}`,
		"patterns_unreached":      `{"$defs":{` + strings.ReplaceAll(manyProperties(2000), `{}`, `{"pattern":"([a-z]{1,200}){1,5}(a|b|c){1,900}"}`) + `}}`,
		"patterns_reached":        `{"properties":{` + strings.ReplaceAll(manyProperties(2000), `{}`, `{"pattern":"([a-z]{1,200}){1,5}(a|b|c){1,900}"}`) + `}}`,
		"dynamic_anchors":         `{"properties":{` + strings.ReplaceAll(manyProperties(1300), `{}`, `{"$dynamicRef":"#a"}`) + `},"$dynamicAnchor":"a"}`,
		"wide_lists":              `{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"anyOf":[{},{},{},{},{},{},{},{},{},{},{},{}]},`, 250), ",") + `]}`,
		"everything_wrong":        `{"properties":{` + strings.ReplaceAll(manyProperties(1300), `{}`, `{"type":["x",{"y":[]}]}`) + `}}`,
		"unicode_ids":             `{"$id":"https://é.example/ü","$defs":{` + strings.ReplaceAll(manyIDs(1300), `"s`, `"ß%F0%9F%98%80`) + `}}`,
		"numbers":                 `{"properties":{` + strings.ReplaceAll(manyProperties(2000), `{}`, `{"minimum":-1e400,"maximum":1e400,"multipleOf":1e-400}`) + `}}`,
		"enum_of_containers":      `{"enum":[` + strings.Repeat(`{"a":[1,2]},`, 255) + `1]}`,
		"required_of_many":        `{"required":["` + strings.Repeat(`a","`, 100_000) + `a"]}`,
		"references_to_enum_data": `{"enum":[` + nested(60, `{}`) + `],"properties":{` + strings.ReplaceAll(manyProperties(1000), `{}`, `{"$ref":"#/enum/0/not"}`) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			start := cpu()
			_, err := Compile("x", []byte(raw))
			took := cpu() - start
			said := fmt.Sprint(err)
			t.Logf("%v, %.200s", took.Round(time.Millisecond), said)
			if took > limit {
				t.Errorf("took %v", took)
			}
			if err != nil {
				checkFlaw(t, err)
				if len(said) > 1200 {
					t.Errorf("an error of %d bytes", len(said))
				}
			}
		})
	}
}

// TestReferencesToStandardDocuments: documents are judged by the schema of a
// dialect that a schema refers to.
func TestReferencesToStandardDocuments(t *testing.T) {
	s := mustCompile(t, `{"properties":{"schema":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`)
	if found := validate(t, s, `{"schema":{"type":"string"}}`); len(found) != 0 {
		t.Error(found)
	}
	found := validate(t, s, `{"schema":{"properties":{"a":{"type":"strin"}}}}`)
	if !slices.ContainsFunc(found, func(v Violation) bool { return v.Pointer == "/schema/properties/a/type" }) {
		t.Error(found)
	}
}
