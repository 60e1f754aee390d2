mod mcp_wire;
