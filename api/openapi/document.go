package openapi

import "encoding/json"

// Version is the version of the OpenAPI specification that documents follow.
const Version = "3.1.0"

// Document is an OpenAPI document. Descriptions are written in CommonMark.
type Document struct {
	OpenAPI    string               `json:"openapi"`
	Info       Info                 `json:"info"`
	Tags       []Tag                `json:"tags,omitempty"`
	Paths      Map[Map[*Operation]] `json:"paths"` // by path and method; methods are in lower case
	Components Components           `json:"components"`
}

// Info describes the document.
type Info struct {
	Title       string `json:"title"`
	Summary     string `json:"summary,omitempty"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version"`
}

// Tag is a name that groups operations.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Components are the shared parts that operations refer to.
type Components struct {
	Schemas         Map[*Schema]         `json:"schemas,omitempty"`
	Responses       Map[*Response]       `json:"responses,omitempty"`
	SecuritySchemes Map[*SecurityScheme] `json:"securitySchemes,omitempty"`
}

// SecurityScheme is a way to authenticate.
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
	Security    []map[string][]string `json:"security,omitempty"` // none: open to everybody
}

// Parameter is a parameter in the path, the query or a header.
type Parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Schema      *Schema `json:"schema"`
	Example     any     `json:"example,omitempty"`
}

// RequestBody describes the body of a request, by media type.
type RequestBody struct {
	Description string      `json:"description,omitempty"`
	Content     Map[*Media] `json:"content"`
	Required    bool        `json:"required,omitempty"`
}

// Media describes a body in its media type.
type Media struct {
	Schema  *Schema         `json:"schema,omitempty"`
	Example json.RawMessage `json:"example,omitempty"`
}

// Response describes an answer. If Ref is set, it refers to a shared Response.
type Response struct {
	Ref         string       `json:"$ref,omitempty"`
	Description string       `json:"description,omitempty"`
	Headers     Map[*Header] `json:"headers,omitempty"`
	Content     Map[*Media]  `json:"content,omitempty"`
}

// Header describes a header of an answer.
type Header struct {
	Description string  `json:"description,omitempty"`
	Schema      *Schema `json:"schema"`
}
