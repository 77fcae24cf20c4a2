"""Stage Bank: fictional tasks, solved in the sandbox, cut at stage boundaries, admitted or refused."""
