// Package ddl reads the interface descriptions (DDL) of other systems' plugins as descriptions of modules: Choria's, which are JSON, and
// MCollective's, which are Ruby.
//
// Nothing of a Ruby file is executed. The parser knows the statements of the language and literal values, and refuses anything else:
//
//	metadata :name => "disk", :timeout => 20
//	requires :mcollective => "2.2.1"
//	action "usage", :description => "Used space" do
//	  display :always
//	  input :mount, :type => :string, :validation => /^\//, :maxlength => 200, :optional => false
//	  output :percent, :description => "Used", :display_as => "Used %"
//	  summarize do
//	    aggregate average(:percent, :format => "mean %.1f")
//	  end
//	end
//
// Literals are texts, symbols, numbers, regular expressions, lists and hashes. A loop over a literal list
// (["start", "stop"].each do |verb| ... end) is written out, once for each element; #{verb} and #{verb.capitalize} are known in its texts.
//
// # What becomes of it
//
//	DDL                           description
//	prompt, display_as            title
//	description, default          the same; x-order keeps the order
//	string, boolean, integer, ... type; list: enum; hash: object; any: no type
//	maxlength                     maxLength; 0: none
//	validation                    pattern, or format if it is the name of a validator
//	optional                      fields that are not optional and have no default are required
//	timeout of the plugin         timeout of each action
//	chart                         distribution
//
// A default counts only for inputs that are not optional, as in the original. Inputs that the DDL does not name are refused. Whether an
// action changes something is not in a DDL: read_only is false unless an action of a JSON DDL has it, which is Tutti's own key.
// Whatever has no equivalent is a Warning.
//
// # Bounds
//
// A text has at most action.MaxMetadataBytes, values are nested at most maxDepth deep, loops are written out to at most maxStatements, and
// texts that are put together have at most maxMade bytes, all of them.
//
// # Errors
//
// All are of kind Invalid and begin with the number of a line.
//
// # Sources
//
// The manuals of MCollective 2.12 and Choria 0.29.
package ddl
