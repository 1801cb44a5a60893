package openapi

import "encoding/json"

// Version is that of the specification that documents follow.
const Version = "3.1.0"

// Document is an OpenAPI document. Texts are CommonMark.
type Document struct {
	OpenAPI    string               `json:"openapi"`
	Info       Info                 `json:"info"`
	Tags       []Tag                `json:"tags,omitempty"`
	Paths      Map[Map[*Operation]] `json:"paths"` // by path and method; methods are in lower case
	Components Components           `json:"components"`
}

// Info says what the document is about.
type Info struct {
	Title       string `json:"title"`
	Summary     string `json:"summary,omitempty"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version"`
}

// Tag is a name under which operations stand together.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Components are what operations refer to.
type Components struct {
	Schemas         Map[*Schema]         `json:"schemas,omitempty"`
	Responses       Map[*Response]       `json:"responses,omitempty"`
	SecuritySchemes Map[*SecurityScheme] `json:"securitySchemes,omitempty"`
}

// SecurityScheme is a way to say who asks.
type SecurityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme,omitempty"`
	In          string `json:"in,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
}

// Operation is a method of a path.
type Operation struct {
	Tags        []string              `json:"tags,omitempty"`
	Summary     string                `json:"summary"`
	Description string                `json:"description,omitempty"`
	OperationID string                `json:"operationId"`
	Parameters  []*Parameter          `json:"parameters,omitempty"`
	RequestBody *RequestBody          `json:"requestBody,omitempty"`
	Responses   Map[*Response]        `json:"responses"`          // by status
	Security    []map[string][]string `json:"security,omitempty"` // none: anybody may ask
}

// Parameter stands in the path, the query or a header.
type Parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Schema      *Schema `json:"schema"`
	Example     any     `json:"example,omitempty"`
}

// RequestBody is what a request carries, by media type.
type RequestBody struct {
	Description string      `json:"description,omitempty"`
	Content     Map[*Media] `json:"content"`
	Required    bool        `json:"required,omitempty"`
}

// Media is a body of one media type.
type Media struct {
	Schema  *Schema         `json:"schema,omitempty"`
	Example json.RawMessage `json:"example,omitempty"`
}

// Response is an answer, or a reference to one.
type Response struct {
	Ref         string       `json:"$ref,omitempty"`
	Description string       `json:"description,omitempty"`
	Headers     Map[*Header] `json:"headers,omitempty"`
	Content     Map[*Media]  `json:"content,omitempty"`
}

// Header is one that an answer has.
type Header struct {
	Description string  `json:"description,omitempty"`
	Schema      *Schema `json:"schema"`
}
